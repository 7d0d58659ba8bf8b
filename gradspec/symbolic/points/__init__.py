"""Points of a rule's domain: the one place that draws them."""

"""Where an expression is not smooth: the one place that finds borders and looks beside them."""

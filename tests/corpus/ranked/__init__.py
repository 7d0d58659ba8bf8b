"""Rules over axes as public projects write them, judged by torch's autograd alone."""

"""Training: supervised warm start and GRPO on whole trajectories. Needs the extra ``train``."""

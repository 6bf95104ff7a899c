"""The data card: what a task set holds, how it was made, and how far its tasks can be trusted."""

from sandmle.evaluation.taskset.card import TaskSetCard, build_card
from sandmle.evaluation.taskset.markdown import card_markdown, card_table
from sandmle.evaluation.taskset.retraining import Retrained, retrain, summarize_retraining

__all__ = [
    "Retrained",
    "TaskSetCard",
    "build_card",
    "card_markdown",
    "card_table",
    "retrain",
    "summarize_retraining",
]

"""A replay and a conversation in pages."""

from typing import TypedDict

from holdfast.api.views.history import DamagedStepView, ReplayMessageView, ReplayStepView


class ReplayPageView(TypedDict):
    """Steps of a session from `first` on, oldest first. A step that cannot be read has `damage`.
    `position` is the last step; `next` is the first step of the next page."""

    session_id: str
    total: int
    position: int
    first: int
    steps: list[ReplayStepView | DamagedStepView]
    next: int | None


class MessagesView(TypedDict):
    """Messages of a session, by index; `next` is the index of the first one of the next page."""

    session_id: str
    messages: list[ReplayMessageView]
    next: int | None

"""What all specifications have in common, and how one is built from a mapping."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from confide.errors import InputError

Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Natural = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]  # of what needs no secrecy: what libraries take
T = TypeVar("T")


def asks_for_nothing(value: Any) -> bool:
    """Whether a value is off; 0.0 asks for something."""
    return value is None or value is False


# A field that is written only where it asks for something: digests of settings stay what they were.
IfAsked = Annotated[T, Field(exclude_if=asks_for_nothing)]


class Spec(BaseModel):
    """Base of all specifications: immutable, strict about keys, no NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


S = TypeVar("S", bound=Spec)


def parse(cls: type[S], value: Any, *, file: str | None = None) -> S:
    """Build a spec from a mapping; InputError names the first offending key and its value."""
    try:
        return cls.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message = "unknown key" if first["type"] == "extra_forbidden" else first["msg"]
        shown = None if first["type"] == "missing" else first["input"]
        shown = type(shown).__name__ if isinstance(shown, dict | list) else shown
        raise InputError(message, file=file, key=key or cls.__name__, value=shown) from None

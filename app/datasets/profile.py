"""What people call a dataset and its classes: shown, set, and completed by what labels say."""

from msgspec import UNSET

from app.datasets.schemas import ClassBody, ClassesBody, ClassList, ClassOut, DatasetChanges, DatasetOut
from app.errors import InvalidRequest
from app.services import Services
from storage.records import ClassProfile
from storage.repositories.datasets.labels import label_detail

_KEYS = "123456789"


def change(services: Services, id: str, changes: DatasetChanges) -> DatasetOut:
    """Change the name, the guidelines or whether a dataset is archived; raises NotFound."""
    dataset = services.datasets.get(id)
    given = {name: value for name in changes.__struct_fields__ if (value := getattr(changes, name)) is not UNSET}
    profile = services.datasets.profile(id).model_copy(update=given)
    services.datasets.put_profile(id, profile)
    return DatasetOut.of(dataset, profile)


def classes(services: Services, id: str) -> ClassList:
    """The classes that were set, and behind them those that documents have; raises NotFound."""
    labels = [
        *(label for label, _ in services.datasets.get(id).classes),
        *(answer.label for answer in services.datasets.log(id).answers().values() if answer.label is not None),
    ]
    known = services.datasets.profile(id).classes
    others = sorted({*labels} - {each.name for each in known}, key=lambda label: (isinstance(label, str), label))
    return _keyed([*known, *(ClassProfile(name=label) for label in others)])


def put_classes(services: Services, id: str, body: ClassesBody) -> ClassList:
    """Set the classes of a dataset; raises NotFound, InvalidRequest naming the class."""
    dataset, log = services.datasets.get(id), services.datasets.log(id)
    log.refreshed()
    label_type = type(dataset.classes[0][0]) if dataset.classes else log.label_type
    for place, each in enumerate(body.classes):
        label_type = label_type or type(each.name)
        _check(place, each, body.classes[:place], label_type)
    given = [
        ClassProfile(name=each.name, key=each.key, description=each.description, color=each.color)
        for each in body.classes
    ]
    profile = services.datasets.profile(id).model_copy(update={"classes": given})
    services.datasets.put_profile(id, profile)
    return classes(services, id)


def _check(place: int, given: ClassBody, earlier: list[ClassBody], label_type: type) -> None:
    detail = label_detail(given.name, label_type)
    if detail is not None:
        raise InvalidRequest(f"classes[{place}].name", detail)
    for other in earlier:
        if other.name == given.name:
            raise InvalidRequest(f"classes[{place}].name", "is that of a class before it")
        if given.key is not None and other.key == given.key:
            raise InvalidRequest(f"classes[{place}].key", f"is that of the class {other.name!r}, too")


def _keyed(known: list[ClassProfile]) -> ClassList:
    """The classes, with digits for those without a key, unless there are more classes than digits."""
    free = iter([key for key in _KEYS if key not in {each.key for each in known}] if len(known) <= len(_KEYS) else [])
    keys = [each.key or next(free, None) for each in known]
    return ClassList(
        classes=[
            ClassOut(name=each.name, key=key, description=each.description, color=each.color)
            for each, key in zip(known, keys, strict=True)
        ]
    )

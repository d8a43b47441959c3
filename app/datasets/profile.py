"""Names of a dataset and its classes: shown, set by people, and completed from the labels."""

from msgspec import UNSET

from app.datasets.schemas import ClassesBody, ClassList, ClassOut, DatasetChanges, DatasetOut
from app.errors import InvalidRequest
from app.services import Services
from core.documents.label_sets import label_order
from storage.records import ClassProfile, labels_in
from storage.repositories.datasets.labels import label_detail

_KEYS = "123456789"


def change(services: Services, id: str, changes: DatasetChanges) -> DatasetOut:
    """Change the name, the guidelines, the shares or whether a dataset is archived; raises NotFound."""
    dataset = services.datasets.get(id)
    given = {name: value for name in changes.__struct_fields__ if (value := getattr(changes, name)) is not UNSET}
    profile = services.datasets.profile(id).model_copy(update=given)
    services.datasets.put_profile(id, profile)
    return DatasetOut.of(dataset, profile)


def classes(services: Services, id: str) -> ClassList:
    """The classes that were set, and behind them those that documents have; raises NotFound."""
    labels = [
        *(label for label, _ in services.datasets.get(id).classes),
        *(label for answer in services.datasets.log(id).answers().values() for label in labels_in(answer.label)),
    ]
    known = services.datasets.profile(id).classes
    others = sorted({*labels} - {each.name for each in known}, key=label_order)
    listed = [*known, *(ClassProfile(name=label) for label in others)]
    free = [key for key in _KEYS if key not in {each.key for each in known}] if len(listed) <= len(_KEYS) else []
    given = ClassList(classes=[])
    for each in listed:
        key = each.key or (free.pop(0) if free else None)
        given.classes.append(ClassOut(name=each.name, key=key, description=each.description, color=each.color))
    return given


def put_classes(services: Services, id: str, body: ClassesBody) -> ClassList:
    """Set the classes of a dataset; raises NotFound, InvalidRequest naming the class."""
    dataset, log = services.datasets.get(id), services.datasets.log(id)
    log.refreshed()
    label_type = type(dataset.classes[0][0]) if dataset.classes else log.label_type
    for place, each in enumerate(body.classes):
        label_type = label_type or type(each.name)
        detail = label_detail(each.name, label_type)
        if detail is not None:
            raise InvalidRequest(f"classes[{place}].name", detail)
        for other in body.classes[:place]:
            if other.name == each.name:
                raise InvalidRequest(f"classes[{place}].name", "is that of a class before it")
            if each.key is not None and other.key == each.key:
                raise InvalidRequest(f"classes[{place}].key", f"is that of the class {other.name!r}, too")
    given = [
        ClassProfile(name=each.name, key=each.key, description=each.description, color=each.color)
        for each in body.classes
    ]
    profile = services.datasets.profile(id).model_copy(update={"classes": given})
    services.datasets.put_profile(id, profile)
    return classes(services, id)

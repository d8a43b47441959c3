"""Names for schemas that stand inside others: generators of clients would call those of a choice ``JobReportType0``."""

from typing import Any

SCHEMAS = "#/components/schemas/"


def named_choices(schemas: dict[str, Any]) -> dict[str, Any]:
    """The schemas with a name for each object and each list of words that a field may be beside something else, such as
    null.

    The name is that of the schema and of the field, so that no other schema changes it.
    """
    found = dict(schemas)
    for parent, schema in schemas.items():
        for field, value in schema.get("properties", {}).items():
            if "anyOf" in value:
                name = parent.removesuffix("Out") + "".join(word.capitalize() for word in field.split("_"))
                options = [_named(option, name, found) for option in value["anyOf"]]
                found[parent] = found[parent] | {
                    "properties": found[parent]["properties"] | {field: value | {"anyOf": options}}
                }
    return dict(sorted(found.items()))


def _named(option: dict[str, Any], name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema, which is added by its name, if it needs one; else the schema itself."""
    if option.get("type") != "object" and not option.keys() & {"enum", "const"}:
        return option
    free = name if name not in schemas else f"{name}Word"
    if free in schemas:
        raise ValueError(f"{free} is the name of another schema")
    schemas[free] = option
    return {"$ref": SCHEMAS + free}

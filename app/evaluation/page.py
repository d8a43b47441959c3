"""An evaluation as one self-contained HTML page, which can be read, printed and saved."""

import hashlib
from base64 import b64encode
from functools import cache
from importlib.resources import files

from starlette.responses import HTMLResponse

from app.evaluation.plots import (
    LARGEST_MATRIX,
    PLOTS,
    Drawing,
    Markup,
    curves,
    element,
    joined,
    reliability,
    save_link,
    style,
    with_curves,
)
from app.evaluation.schemas import ClassFigures, Evaluation

_MOST_CONFUSED = 30
_NOTES = (
    "Precision: of the documents that were given a label, the fraction that has it. "
    "Recall: of the documents that have a label, the fraction that was given it. "
    "F1 is their harmonic mean, macro F1 the mean of F1 over the labels. "
    "Break-even is the precision where it equals the recall: among as many documents as have the label, "
    "those of the highest scores. "
    "A dash is 0 / 0."
)


def page_of(evaluation: Evaluation) -> HTMLResponse:
    """The page, with a Content-Security-Policy that loads nothing and runs no scripts."""
    name = f"{evaluation.model}-{evaluation.version}-evaluation.html"
    headers = {
        "Content-Security-Policy": f"{_content_policy()}; frame-ancestors 'self'",
        "Content-Disposition": f'inline; filename="{name}"',
        "Cache-Control": "no-store",
    }
    return HTMLResponse(_document(evaluation), headers=headers)


def _document(evaluation: Evaluation) -> str:
    title = f"{evaluation.model}, version {evaluation.version}: evaluation"
    # a saved page keeps the policy
    meta = Markup(
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_content_policy()}">'
    )
    head = element("head", meta, element("title", title), element("style", Markup(_style())))
    of = f" of dataset {evaluation.dataset}" if evaluation.dataset else ""
    summary = f"{evaluation.labeled:,} labeled documents{of}, evaluated {evaluation.evaluated_at:%Y-%m-%d %H:%M} UTC"
    warnings = [element("li", warning) for warning in evaluation.warnings]
    sections = [
        element("h1", evaluation.model, " ", element("small", f"version {evaluation.version}")),
        element("p", summary),
        _figures(evaluation),
        element("ul", *warnings, class_="warnings") if warnings else Markup(),
        _classes(evaluation),
        _confusion(evaluation),
        _plots(evaluation),
    ]
    body = element("body", element("main", *sections, element("p", _NOTES, class_="note")))
    return f"<!doctype html>{element('html', head, body, lang='en')}"


def _figures(evaluation: Evaluation) -> Markup:
    figures: dict[str, float | None] = {
        "accuracy": evaluation.accuracy,
        "error": evaluation.error,
        "macro F1": evaluation.macro_f1,
        "micro F1": evaluation.micro_f1,
        "mean break-even": evaluation.macro_break_even,
    }
    if evaluation.calibration:
        figures["calibration error"] = evaluation.calibration.expected_error
        figures["Brier score"] = evaluation.calibration.brier
        figures["log loss"] = evaluation.calibration.log_loss
    shown = (element("div", element("dt", name), element("dd", _number(value))) for name, value in figures.items())
    return element("dl", *shown)


def _classes(evaluation: Evaluation) -> Markup:
    names = ("label", "documents", "given", "precision", "recall", "F1", "break-even", "average precision")
    rows = []
    for each in evaluation.classes:
        counts = (f"{each.documents:,}", f"{each.given:,}")
        shares = (
            _number(share) for share in (each.precision, each.recall, each.f1, each.break_even, each.average_precision)
        )
        name = joined(_label(each), "" if each.known else " (unknown to the model)")
        rows.append(
            element("tr", element("th", name, scope="row"), *(element("td", text) for text in (*counts, *shares)))
        )
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in names)))
    return _section("Label by label", element("table", head, element("tbody", *rows)))


def _confusion(evaluation: Evaluation) -> Markup:
    drawing = PLOTS["confusion"](evaluation)
    if len(evaluation.classes) > LARGEST_MATRIX:
        return _most_confused(evaluation, joined("Confusion", save_link(evaluation, "confusion", drawing)))
    note = (
        "Rows: labels that documents have. Columns: labels that they were given. The stronger the colour, "
        "the larger the fraction of the row."
    )
    return _plot(evaluation, "confusion", "Confusion", note, drawing)


def _most_confused(evaluation: Evaluation, title: Markup) -> Markup:
    """The pairs of labels that are confused most often, in place of a matrix with too many labels."""
    pairs = [
        (count, has, was)
        for has, counts in zip(evaluation.classes, evaluation.confusion, strict=True)
        for was, count in zip(evaluation.classes, counts, strict=True)
        if count and has is not was
    ]
    pairs.sort(key=lambda pair: -pair[0])
    head = element(
        "thead", element("tr", *(element("th", name, scope="col") for name in ("has", "was given", "documents")))
    )
    rows = [
        element("tr", element("th", _label(has), scope="row"), element("th", _label(was)), element("td", f"{count:,}"))
        for count, has, was in pairs[:_MOST_CONFUSED]
    ]
    note = "The pairs of labels that are confused most often. The JSON form has all."
    return _section(title, element("p", note, class_="note"), element("table", head, element("tbody", *rows)))


def _plots(evaluation: Evaluation) -> Markup:
    shown = with_curves(evaluation)
    parts = []
    if shown:
        of = (
            "each label"
            if len(shown) == len(evaluation.classes)
            else f"the {len(shown)} labels with the most documents"
        )
        note = f"Curves of {of}, by score. A curve crosses the dashed line at its break-even."
        parts.append(_plot(evaluation, "precision_recall", "Precision and recall", note, curves(shown)))
    if evaluation.calibration:
        note = "Accuracy by the probability of the likeliest label. The bars should end at the dashed line."
        parts.append(_plot(evaluation, "reliability", "Reliability", note, reliability(evaluation.calibration)))
    return element("div", *parts, class_="plots")


def _plot(evaluation: Evaluation, name: str, title: str, note: str, drawing: Drawing) -> Markup:
    heading = joined(title, save_link(evaluation, name, drawing))
    return _section(heading, element("p", note, class_="note"), drawing.svg())


def _section(title: str, *content: Markup) -> Markup:
    return element("section", element("h2", title), *content)


def _label(each: ClassFigures) -> Markup:
    """The label, isolated so that its direction of writing does not affect the text around it."""
    return element("bdi", str(each.label), title=str(each.label))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


@cache
def _style() -> str:
    return style() + files("app.evaluation").joinpath("page.css").read_text(encoding="utf-8")


@cache
def _content_policy() -> str:
    digest = b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"

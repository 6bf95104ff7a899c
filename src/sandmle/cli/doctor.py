"""``sandmle doctor``: what this machine can isolate, what is missing, and how to get it."""

from typing import TYPE_CHECKING

import typer

from sandmle.cli.output import JsonOption, console, print_json

if TYPE_CHECKING:
    from sandmle.sandbox.survey import BackendReport, Finding, MachineReport


def command(as_json: JsonOption = False) -> None:
    """Looks at this machine, really starts every sandbox backend, and says what each one holds.

    Exit codes: 0 the default backend works, 1 it does not.
    """
    from sandmle.sandbox.survey import survey_machine

    report = survey_machine()
    if as_json:
        print_json({**report.model_dump(mode="json"), "default_works": report.default_works})
    else:
        _show(report)
    raise typer.Exit(0 if report.default_works else 1)


def _show(report: "MachineReport") -> None:
    screen = console()
    for finding in report.findings:
        for line in _finding_lines(finding):
            screen.print(line, markup=False)
    for backend in report.backends:
        for line in _backend_lines(backend):
            screen.print(line, markup=False)
    verdict = "works and is used" if report.default_works else "does not work, and nothing weaker is used in its place"
    screen.print(f"default sandbox: {report.default}, which {verdict}", markup=False)


def _finding_lines(finding: "Finding") -> list[str]:
    lines = [f"{'ok     ' if finding.is_there else 'missing'}  {finding.name}: {finding.detail}"]
    if finding.remedy:
        lines.append(f"         get it: {finding.remedy}")
    return lines


def _backend_lines(backend: "BackendReport") -> list[str]:
    if not backend.works:
        return [f"missing  sandbox {backend.name}: {backend.reason}"]
    lines = [f"ok       sandbox {backend.name} holds: {', '.join(backend.capabilities)}"]
    if backend.missing:
        lines.append(f"         it does not hold: {', '.join(backend.missing)}")
    if backend.note:
        lines.append(f"         {backend.note}")
    return lines

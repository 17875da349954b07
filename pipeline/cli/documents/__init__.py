"""What ``--json`` prints, command by command: the shapes, and their JSON Schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from pipeline.cli.documents import care, gates, looks, plans
from pipeline.cli.documents.estimates import EstimatesDocument
from pipeline.cli.documents.shape import Document

__all__ = ["DOCUMENTS", "document_schema"]

DOCUMENTS: Mapping[str, Any] = {
    "init": care.InitDocument,
    "run": EstimatesDocument,
    "judge": EstimatesDocument,
    "resume": EstimatesDocument,
    "replay": EstimatesDocument,
    "plan": plans.PlanDocument,
    "estimate": EstimatesDocument,
    "report": care.ReportDocument,
    "compare": plans.CompareDocument,
    "gate": gates.GateDocument,
    "runs list": care.RunsListDocument,
    "study": plans.StudyDocument | plans.StudyListDocument,
    "look": care.LookDocument,
    "import": care.ImportDocument,
    "audit": care.AuditDocument,
    "label": looks.LabelDocument,
    "labels export": care.LabelsExportDocument,
    "labels import": EstimatesDocument | looks.LabelPlanDocument,
    "labels plan": looks.LabelPlanDocument,
    "labels next": looks.LabelPlanDocument,
    "labels status": looks.LabelPlanDocument,
    "labels carry": looks.CarryDocument,
    "export": care.ExportDocument,
    "cache stats": care.CacheStatsDocument,
    "cache verify": care.CacheVerifyDocument,
    "cache import": care.CacheImportDocument,
    "cache repair": care.CacheRepairDocument,
    "cache prune": care.CachePruneDocument,
    "config check": care.ConfigCheckDocument,
    "config schema": dict[str, Any],
    "doctor": care.DoctorDocument,
    "skill": care.SkillDocument,
    "schema": care.SchemaListDocument | dict[str, Any],
}
"""Command → the type of its document. The two ``schema`` commands print JSON Schemas themselves."""


class _Schema(GenerateJsonSchema):
    """JSON Schema without the titles that only repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def document_schema(command: str) -> dict[str, Any]:
    """The JSON Schema of what ``auxeval COMMAND --json`` prints.

    Raises:
        KeyError: no such command.
    """
    schema = TypeAdapter(DOCUMENTS[command]).json_schema(schema_generator=_Schema)
    if set(Document.__annotations__) <= schema.get("properties", {}).keys():
        schema["properties"]["command"].setdefault("const", command)
        schema["properties"]["schema"].setdefault("const", 1)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": f"auxeval {command} --json"}

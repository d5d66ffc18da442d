"""The fields of each tracing vendor, one table a vendor.

A path leads from a record to a value. Its steps, separated by ``/``, are names of fields, indices
of lists, and ``*`` for the first value of an object. The first of several paths that leads to a
value is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.readers.json_fields import names
from mast_tui.traces.readers.span_tree.rows import RowKind

Paths = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The paths to the facts of one timed call; the defaults are those of many vendors.

    ``tokens`` are the paths to a model's input tokens. The paths to its output tokens have
    ``output`` in place of ``input``, and ``completion`` in place of ``prompt``.
    """

    id: Paths
    trace: Paths = ("trace_id",)
    parent: Paths
    name: Paths = ("name",)
    kind: Paths
    start: Paths
    end: Paths
    input: Paths = ("input",)
    output: Paths = ("output",)
    error: Paths = ("error",)
    status: Paths = ()
    model: Paths
    tokens: Paths
    metadata: Paths = ("metadata",)
    call_id: Paths


@dataclass(frozen=True, slots=True)
class Vendor:
    """The marks and the fields of one vendor's exports.

    Attributes:
        name: The name that ``inspect`` shows.
        marks: Groups of byte strings; each document of the vendor has one of each group.
        required_paths: Groups of paths; one path of each group leads to a value in each record.
        fields: The paths to the facts of one record.
        kinds: The kind of row of each record type, in capitals.
        containers: The fields that hold lists of records or traces.
        children: The field that holds records nested in a record.
        allows_bare_records: Whether a record may be without a trace around it.
        record_lists: The paths from a trace to the lists of its records.
        fact_paths: The paths from a trace to a separate object with its facts.
        required_fact_paths: Like ``required_paths``, for the own facts of a trace without records.
        trace_id: The paths to a trace's id.
        trace_name: The paths to a trace's name.
        readable_types: The types whose output is shown as a log.
        scoring_types: The types of calls that scored the run; they are hidden from annotators.
        hidden_paths: The paths to scores and expected answers, which are hidden too.
        attributes: The paths to the attributes of a record's original OpenTelemetry span.
        thought_paths: The paths to a thought in an event of an agent.
        facts: The paths to the replacement of a missing output, for ``readable_types``.
        version: The paths to the version of the system, from a trace or a record.
        lacks_types: Whether most records lack a type.
        has_json_texts: Whether all inputs and outputs are JSON texts.
        may_succeed_with_error_text: Whether a successful call may have an error text.
        has_short_items: Whether calls and results may have no type, and inputs may be wrapped in
            ``{"args": […]}``, as in DeepEval.
        step_type: The type of model calls without input and model, which the record around them
            has, as in Mastra.
        has_end_records: Whether a call has a record of its start and one of its end, as in ATOF.
            The joined record has the second one under ``end``.
    """

    name: str
    marks: tuple[tuple[bytes, ...], ...]
    required_paths: tuple[Paths, ...]
    fields: Fields
    kinds: Mapping[str, RowKind]
    containers: Paths = ()
    children: str | None = None
    allows_bare_records: bool = True
    record_lists: Paths = ()
    fact_paths: Paths = ()
    required_fact_paths: tuple[Paths, ...] = ()
    trace_id: Paths = ("id",)
    trace_name: Paths = ("name",)
    readable_types: frozenset[str] = frozenset()
    scoring_types: frozenset[str] = frozenset()
    hidden_paths: Paths = ()
    attributes: Paths = ()
    thought_paths: Paths = ()
    facts: Paths = ()
    version: Paths = ()
    lacks_types: bool = False
    has_json_texts: bool = False
    may_succeed_with_error_text: bool = False
    has_short_items: bool = False
    step_type: str = ""
    has_end_records: bool = False


LANGSMITH: Final = Vendor(
    name="langsmith",
    marks=((b'"run_type"',),),
    required_paths=(
        ("run_type",),
        ("dotted_order", "trace_id", "parent_run_id", "parent_run_ids", "child_runs"),
        ("inputs", "outputs", "start_time", "child_runs"),
    ),
    containers=("runs", "data", "post", "patch"),
    children="child_runs",
    fields=Fields(
        id=("id", "run_id"),
        parent=("parent_run_id", "parent_run_ids/-1"),
        kind=("run_type",),
        start=("start_time",),
        end=("end_time",),
        input=("inputs",),
        output=("outputs",),
        status=("status",),
        model=names("""
            extra/metadata/ls_model_name extra/invocation_params/model
            extra/invocation_params/model_name outputs/llm_output/model_name outputs/model
        """),
        tokens=names("""
            prompt_tokens extra/metadata/usage_metadata/input_tokens usage_metadata/input_tokens
            outputs/usage_metadata/input_tokens
            outputs/generations/0/0/message/kwargs/usage_metadata/input_tokens
            outputs/llm_output/token_usage/prompt_tokens outputs/usage/prompt_tokens
            outputs/usage/input_tokens
        """),
        metadata=("extra/metadata", "metadata"),
        call_id=("extra/tool_call_id", "extra/metadata/tool_call_id", "inputs/tool_call/id"),
    ),
    kinds={"LLM": RowKind.MODEL, "TOOL": RowKind.TOOL},
    readable_types=frozenset({"RETRIEVER"}),
    hidden_paths=("feedback_stats", "feedback", "reference_outputs"),
)

LANGFUSE: Final = Vendor(
    name="langfuse",
    marks=((b'"startTime"', b'"start_time"', b'"htmlPath"', b'"projectId"'),),
    required_paths=(
        ("type",),
        ("startTime", "start_time"),
        names("""
            parentObservationId parent_observation_id traceId usageDetails usage_details
            statusMessage status_message
        """),
    ),
    containers=("data", "observations", "traces"),
    record_lists=("observations",),
    fact_paths=("trace",),
    required_fact_paths=(("timestamp",), ("htmlPath", "projectId", "bookmarked", "totalCost")),
    fields=Fields(
        id=("id", "observationId", "observation_id"),
        trace=("traceId", "trace_id"),
        parent=("parentObservationId", "parent_observation_id"),
        kind=("type",),
        start=("startTime", "start_time"),
        end=("endTime", "end_time"),
        error=("statusMessage", "status_message"),
        status=("level",),
        model=("model", "providedModelName", "provided_model_name"),
        tokens=names("""
            usageDetails/input usage_details/input usageDetails/input_tokens
            usage_details/input_tokens usageDetails/prompt_tokens usage/input usage/promptTokens
            usage/prompt_tokens promptTokens inputUsage
        """),
        call_id=(
            "metadata/tool_call_id",
            "metadata/toolCallId",
            "metadata/attributes/gen_ai.tool.call.id",
            "metadata/attributes/ai.toolCall.id",
        ),
    ),
    kinds={"GENERATION": RowKind.MODEL, "TOOL": RowKind.TOOL, "AGENT": RowKind.AGENT},
    readable_types=frozenset({"RETRIEVER", "EVALUATOR", "GUARDRAIL", "EVENT"}),
    hidden_paths=("scores",),
    attributes=("metadata/attributes",),
    thought_paths=("metadata/attributes/thought",),
    version=("version", "metadata/resourceAttributes/service.version"),
    may_succeed_with_error_text=True,
)

MLFLOW: Final = Vendor(
    name="mlflow",
    marks=((b"mlflow.",), (b"spans",)),
    required_paths=(
        ("span_id", "context/span_id"),
        (
            "attributes/mlflow.spanType",
            "attributes/mlflow.traceRequestId",
            "attributes/mlflow.spanInputs",
        ),
    ),
    containers=("traces",),
    allows_bare_records=False,
    record_lists=("data/spans", "trace/data/spans"),
    fact_paths=("info", "trace/info"),
    trace_id=("trace_id", "request_id"),
    trace_name=("tags/mlflow.traceName",),
    fields=Fields(
        id=("span_id", "context/span_id"),
        trace=("attributes/mlflow.traceRequestId",),
        parent=("parent_span_id", "parent_id"),
        kind=("attributes/mlflow.spanType",),
        start=("start_time_unix_nano", "start_time_ns", "start_time"),
        end=("end_time_unix_nano", "end_time_ns", "end_time"),
        input=("attributes/mlflow.spanInputs",),
        output=("attributes/mlflow.spanOutputs",),
        error=names("""
            events/0/attributes/exception.message events/-1/attributes/exception.message
            status/message status_message
        """),
        status=("status/code", "status/status_code", "status_code"),
        model=(
            "attributes/mlflow.llm.model",
            "attributes/model",
            "attributes/mlflow.spanInputs/model",
            "attributes/mlflow.spanOutputs/model",
        ),
        tokens=names("""
            attributes/mlflow.chat.tokenUsage/input_tokens
            attributes/mlflow.spanOutputs/usage/prompt_tokens
            attributes/mlflow.spanOutputs/usage/input_tokens
        """),
        metadata=("attributes/metadata",),
        call_id=("attributes/tool_call_id", "attributes/gen_ai.tool.call.id"),
    ),
    kinds={
        "LLM": RowKind.MODEL,
        "CHAT_MODEL": RowKind.MODEL,
        "TOOL": RowKind.TOOL,
        "AGENT": RowKind.AGENT,
    },
    readable_types=frozenset({"RETRIEVER", "EVALUATOR", "GUARDRAIL", "RERANKER"}),
    hidden_paths=("assessments",),
    has_json_texts=True,
    may_succeed_with_error_text=True,
)

WEAVE: Final = Vendor(
    name="weave",
    marks=((b'"op_name"',), (b'"started_at"',)),
    required_paths=(("op_name",), ("started_at",), ("inputs", "output", "trace_id")),
    containers=("calls", "data", "traces"),
    fields=Fields(
        id=("id",),
        parent=("parent_id",),
        name=("op_name",),
        kind=("attributes/weave/kind", "attributes/kind"),
        start=("started_at",),
        end=("ended_at",),
        input=("inputs",),
        error=("exception",),
        status=("summary/weave/status", "summary/status"),
        model=("output/model", "inputs/model"),
        tokens=names("""
            output/usage/prompt_tokens output/usage/input_tokens summary/usage/*/prompt_tokens
            summary/usage/*/input_tokens
        """),
        metadata=("attributes",),
        call_id=("attributes/tool_call_id",),
    ),
    kinds={"LLM": RowKind.MODEL, "TOOL": RowKind.TOOL, "AGENT": RowKind.AGENT},
    readable_types=frozenset({"SEARCH", "RETRIEVER", "GUARDRAIL"}),
    scoring_types=frozenset({"SCORER"}),
    hidden_paths=("feedback", "summary/weave/feedback"),
    lacks_types=True,
)

BRAINTRUST: Final = Vendor(
    name="braintrust",
    marks=((b'"root_span_id"',),),
    required_paths=(
        ("span_id",),
        ("root_span_id",),
        ("span_attributes", "span_parents", "metrics"),
    ),
    containers=("events", "data", "objects", "rows"),
    fields=Fields(
        id=("span_id",),
        trace=("root_span_id",),
        parent=("span_parents/0",),
        name=("span_attributes/name",),
        kind=("span_attributes/type",),
        start=("metrics/start", "created"),
        end=("metrics/end",),
        model=("metadata/model",),
        tokens=("metrics/prompt_tokens",),
        call_id=("metadata/tool_call_id",),
    ),
    kinds={"LLM": RowKind.MODEL, "TOOL": RowKind.TOOL},
    scoring_types=frozenset({"SCORE"}),
    hidden_paths=("scores", "expected"),
)

OPENAI_AGENTS: Final = Vendor(
    name="openai-agents",
    marks=((b'"trace.span"',),),
    required_paths=(("object",), ("span_data/type",), ("trace_id", "parent_id")),
    containers=("data", "items"),
    record_lists=("spans",),
    fact_paths=("trace",),
    required_fact_paths=(("object",), ("workflow_name",)),
    trace_name=("workflow_name",),
    fields=Fields(
        id=("id", "span_id"),
        parent=("parent_id",),
        name=("span_data/name", "span_data/type"),
        kind=("span_data/data/sdk_span_type", "span_data/type"),
        start=("started_at",),
        end=("ended_at",),
        input=("span_data/input",),
        output=("span_data/output", "span_data/response"),
        model=("span_data/model", "span_data/response/model"),
        tokens=names("""
            span_data/usage/input_tokens span_data/usage/prompt_tokens
            span_data/response/usage/input_tokens
        """),
        call_id=("span_data/call_id", "span_data/tool_call_id"),
    ),
    kinds={
        "GENERATION": RowKind.MODEL,
        "RESPONSE": RowKind.MODEL,
        "FUNCTION": RowKind.TOOL,
        "AGENT": RowKind.AGENT,
    },
    readable_types=frozenset({"HANDOFF", "GUARDRAIL", "CUSTOM", "MCP_TOOLS", "TRANSCRIPTION"}),
    facts=("span_data",),
)

DEEPEVAL: Final = Vendor(
    name="deepeval",
    marks=((b'"baseSpans"',), (b'"llmSpans"',)),
    required_paths=(("uuid",), ("type",), ("startTime",)),
    containers=("traces", "testCases"),
    allows_bare_records=False,
    record_lists=names("""
        agentSpans baseSpans llmSpans toolSpans retrieverSpans trace/agentSpans trace/baseSpans
        trace/llmSpans trace/toolSpans trace/retrieverSpans
    """),
    fact_paths=("trace",),
    trace_id=("uuid",),
    fields=Fields(
        id=("uuid",),
        trace=("traceUuid",),
        parent=("parentUuid",),
        kind=("type",),
        start=("startTime",),
        end=("endTime",),
        input=("input", "toolsCalled/0/inputParameters"),
        status=("status",),
        model=("model",),
        tokens=("inputTokenCount",),
        call_id=("metadata/tool_call_id",),
    ),
    kinds={"LLM": RowKind.MODEL, "TOOL": RowKind.TOOL, "AGENT": RowKind.AGENT},
    readable_types=frozenset({"RETRIEVER"}),
    hidden_paths=("metricsData", "expectedOutput", "expectedTools"),
    has_short_items=True,
)

MASTRA: Final = Vendor(
    name="mastra",
    marks=((b'"spanType"',), (b'"startedAt"',), (b'"agent_run"', b'"workflow_run"')),
    required_paths=(("spanId",), ("spanType",), ("startedAt",)),
    containers=("traces", "data"),
    record_lists=("spans", "trace/spans"),
    trace_id=("traceId", "trace/traceId"),
    fields=Fields(
        id=("spanId",),
        trace=("traceId",),
        parent=("parentSpanId",),
        name=("entityName", "name"),
        kind=("spanType",),
        start=("startedAt",),
        end=("endedAt",),
        error=("error/message", "error"),
        model=("attributes/responseModel", "attributes/model"),
        tokens=("attributes/usage/inputTokens",),
        call_id=("attributes/toolCallId", "metadata/toolCallId"),
    ),
    kinds={
        "MODEL_GENERATION": RowKind.MODEL,
        "MODEL_STEP": RowKind.MODEL,
        "TOOL_CALL": RowKind.TOOL,
        "MCP_TOOL_CALL": RowKind.TOOL,
        "AGENT_RUN": RowKind.AGENT,
    },
    step_type="MODEL_STEP",
)

ATOF: Final = Vendor(
    name="atof",
    marks=((b'"atof_version"',),),
    required_paths=(("atof_version",), ("uuid",), ("kind",)),
    fields=Fields(
        id=("uuid",),
        trace=("propagation_root_uuid",),
        parent=("parent_uuid",),
        kind=("category",),
        start=("timestamp",),
        end=("end/timestamp",),
        input=("category_profile/annotated_request", "data"),
        output=(
            "end/data/__nemo_relay_integrations_langchain_model_response",
            "end/data/choices/0",
            "end/data/candidates/0/content",
            "end/data",
            "end/category_profile/annotated_response",
        ),
        error=("end/metadata/otel.status_description",),
        status=("end/metadata/otel.status_code",),
        model=("end/category_profile/model_name", "category_profile/model_name", "data/model"),
        tokens=names("""
            end/category_profile/annotated_response/usage/prompt_tokens
            end/data/usage/prompt_tokens end/data/usage/input_tokens
        """),
        call_id=("category_profile/tool_call_id", "metadata/tool_call_id"),
    ),
    kinds={"LLM": RowKind.MODEL, "TOOL": RowKind.TOOL, "AGENT": RowKind.AGENT},
    readable_types=frozenset({"MARK", "RETRIEVER", "RERANKER", "GUARDRAIL", "EVALUATOR"}),
    has_end_records=True,
)

VENDORS: Final = (
    LANGSMITH,
    LANGFUSE,
    MLFLOW,
    WEAVE,
    BRAINTRUST,
    OPENAI_AGENTS,
    DEEPEVAL,
    MASTRA,
    ATOF,
)

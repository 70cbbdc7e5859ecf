// SPDX-License-Identifier: Apache-2.0

package telemetry

// All names that telemetry writes. Names with gen_ai are from OpenTelemetry's semantic conventions for generative AI,
// which are under development; if the conventions rename them, only this file changes. Names with loop and refrain
// are defined by this project.

// Operations. The name of a span begins with its operation.
const (
	opWorkflow  = "invoke_workflow"
	opAgent     = "invoke_agent"
	opChat      = "chat"
	opTool      = "execute_tool"
	opIteration = "iteration" // not an operation of the conventions
)

// Attributes of the semantic conventions.
const (
	keyOperation     = "gen_ai.operation.name"
	keyProvider      = "gen_ai.provider.name"
	keyWorkflow      = "gen_ai.workflow.name"
	keyConversation  = "gen_ai.conversation.id" // the session ID, which the refrain command uses as the run ID
	keyAgent         = "gen_ai.agent.name"
	keyAgentAbout    = "gen_ai.agent.description"
	keyRequestModel  = "gen_ai.request.model"
	keyMaxTokens     = "gen_ai.request.max_tokens"
	keyTemperature   = "gen_ai.request.temperature"
	keyOutputType    = "gen_ai.output.type" // "json" or "text", if the request asks for one
	keyServer        = "server.address"
	keyPort          = "server.port"
	keyResponseModel = "gen_ai.response.model"
	keyResponseID    = "gen_ai.response.id"
	keyFinish        = "gen_ai.response.finish_reasons"
	keyInputTokens   = "gen_ai.usage.input_tokens"
	keyOutputTokens  = "gen_ai.usage.output_tokens"
	keyCachedTokens  = "gen_ai.usage.cache_read.input_tokens"
	keyCacheWrites   = "gen_ai.usage.cache_creation.input_tokens"
	keyReasoning     = "gen_ai.usage.reasoning.output_tokens"
	keyTokenType     = "gen_ai.token.type" // attribute of the token metric: "input" or "output"
	keyTool          = "gen_ai.tool.name"
	keyToolType      = "gen_ai.tool.type"
	keyToolAbout     = "gen_ai.tool.description"
	keyToolCall      = "gen_ai.tool.call.id"
	keyErrorType     = "error.type"

	// Content, written only if [Config].Content is set.
	keyInstructions   = "gen_ai.system_instructions"
	keyInputMessages  = "gen_ai.input.messages"
	keyOutputMessages = "gen_ai.output.messages"
	keyToolArguments  = "gen_ai.tool.call.arguments"
	keyToolResult     = "gen_ai.tool.call.result"

	// The score of an iteration.
	eventEvaluation  = "gen_ai.evaluation.result"
	keyEvaluation    = "gen_ai.evaluation.name"
	keyScore         = "gen_ai.evaluation.score.value"
	keyScoreLabel    = "gen_ai.evaluation.score.label" // "best", "accepted" or "rejected"
	keyScoreExplains = "gen_ai.evaluation.explanation"
)

// Attributes of this project.
const (
	keyLoop          = "loop.name"
	keyIteration     = "loop.iteration"
	keyBest          = "loop.best"
	keyRejected      = "loop.rejected"
	keyComplete      = "loop.complete"
	keyFailures      = "loop.failures"
	keyStopReason    = "loop.stop_reason"
	keyIterations    = "loop.iterations"
	keyBestScore     = "loop.best_score"
	keyBestIteration = "loop.best_iteration"

	keyApp        = "refrain.app"
	keyInvocation = "refrain.invocation.id" // the same for all parts of a run
	keyResumed    = "refrain.resumed"       // true if an earlier part of the run has a span of its own
	keyOutcome    = "refrain.outcome"       // "waiting", "paused" or "canceled", of what has not come to its end
	keyAgentType  = "refrain.agent.type"
	keyAddress    = "refrain.address"
	keyAttempt    = "refrain.attempt"
)

// Metrics of the semantic conventions. Times are in seconds.
const (
	metricWorkflow = "gen_ai.workflow.duration"
	metricAgent    = "gen_ai.invoke_agent.duration"
	metricTool     = "gen_ai.execute_tool.duration"
	metricModel    = "gen_ai.client.operation.duration"
	metricTokens   = "gen_ai.client.token.usage"
)

// Attributes of log records.
const (
	logTrace = "trace_id"
	logSpan  = "span_id"
)

// EnvContent is the environment variable that turns on [Config].Content.
const EnvContent = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// scope names the instrumentation.
const scope = "github.com/refrain-dev/refrain"

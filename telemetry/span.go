// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/values/propagate"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// work is a span that has not ended.
type work struct {
	outer        *work
	run          *work // the span of the run; nil if this is the run
	agent        *work // the span of the nearest agent; nil outside of one
	conversation string
	span         trace.Span
	began        time.Time
	ended        atomic.Bool
	in, out      atomic.Int64 // tokens of the model calls in it
}

type workKey struct{}

// begin starts a span.
func (o *Observer) begin(ctx context.Context, name string, kind trace.SpanKind, conversation string,
	attrs []attribute.KeyValue, links ...trace.Link) (context.Context, *work) {
	w := &work{conversation: conversation, began: time.Now()}
	if w.outer, _ = ctx.Value(workKey{}).(*work); w.outer != nil {
		w.agent = w.outer.agent
	}
	if w.outer != nil && conversation == "" {
		w.conversation, w.run = w.outer.conversation, w.outer.run
		if w.run == nil {
			w.run = w.outer
		}
	}
	if w.conversation != "" {
		attrs = append(attrs, attribute.String(keyConversation, w.conversation))
	}
	ctx, w.span = o.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...),
		trace.WithLinks(links...), trace.WithTimestamp(w.began))
	return context.WithValue(ctx, workKey{}, w), w
}

// once returns a function that calls f at its first call only; see [observe.Observer].
func (w *work) once(f func(error)) func(error) {
	return func(err error) {
		if w.ended.CompareAndSwap(false, true) {
			f(err)
		}
	}
}

// end ends the span, and returns how many seconds the span was open.
func (w *work) end(err error) (seconds float64) {
	if in, out := w.in.Load(), w.out.Load(); in+out > 0 {
		w.span.SetAttributes(attribute.Int64(keyInputTokens, in), attribute.Int64(keyOutputTokens, out))
	}
	note(w.span, err)
	now := time.Now()
	w.span.End(trace.WithTimestamp(now))
	return now.Sub(w.began).Seconds()
}

// measurement returns the attributes of a metric, with the type of the error if there is one.
func measurement(err error, attrs ...attribute.KeyValue) metric.MeasurementOption {
	if kind := errorType(err); kind != "" {
		attrs = append(attrs, attribute.String(keyErrorType, kind))
	}
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

// Run implements [observe.Observer].
func (o *Observer) Run(ctx context.Context, r *observe.Run) (context.Context, func(error)) {
	attrs := []attribute.KeyValue{
		attribute.String(keyOperation, opWorkflow), attribute.String(keyWorkflow, r.Agent),
		attribute.String(keyApp, r.AppName), attribute.String(keyInvocation, r.InvocationID),
	}
	var links []trace.Link
	if r.Resumed {
		attrs = append(attrs, attribute.Bool(keyResumed, true))
		if sc, ok := o.leg(r.InvocationID); ok {
			links = append(links, trace.Link{SpanContext: sc})
		}
	}
	name, id := r.Agent, r.InvocationID
	ctx, w := o.begin(ctx, opWorkflow+" "+name, trace.SpanKindInternal, r.SessionID, attrs, links...)
	return propagate.With(ctx, o.fields), w.once(func(err error) {
		seconds := w.end(err)
		o.keepLeg(id, w.span.SpanContext(), err == nil)
		o.workflow.Record(ctx, seconds, measurement(err, attribute.String(keyWorkflow, name)))
	})
}

// Step implements [observe.Observer].
func (o *Observer) Step(ctx context.Context, s *observe.Step) (context.Context, func(error)) {
	attrs := []attribute.KeyValue{
		attribute.String(keyOperation, opAgent), attribute.String(keyAgent, s.Agent),
		attribute.String(keyAgentType, s.Type), attribute.String(keyAddress, s.Address),
		attribute.Int(keyAttempt, s.Attempt),
	}
	if s.Description != "" {
		attrs = append(attrs, attribute.String(keyAgentAbout, s.Description))
	}
	if s.Iteration > 0 {
		attrs = append(attrs, attribute.Int(keyIteration, s.Iteration))
	}
	if s.Resumed {
		attrs = append(attrs, attribute.Bool(keyResumed, true))
	}
	kind := trace.SpanKindInternal
	if agent.Type(s.Type) == agent.TypeRemote {
		kind = trace.SpanKindClient
	}
	name := s.Agent
	ctx, w := o.begin(ctx, opAgent+" "+name, kind, "", attrs)
	w.agent = w
	return ctx, w.once(func(err error) {
		o.agent.Record(ctx, w.end(err), measurement(err, attribute.String(keyAgent, name)))
	})
}

// Iteration implements [observe.Observer].
func (o *Observer) Iteration(ctx context.Context, it *observe.Iteration) (context.Context, func(error)) {
	ctx, w := o.begin(ctx, opIteration+" "+it.Loop, trace.SpanKindInternal, "", []attribute.KeyValue{
		attribute.String(keyLoop, it.Loop), attribute.Int(keyIteration, it.Number),
		attribute.String(keyAddress, it.Address),
	})
	return ctx, w.once(func(err error) {
		w.span.SetAttributes(attribute.Bool(keyComplete, it.Complete))
		if it.Failures > 0 {
			w.span.SetAttributes(attribute.Int(keyFailures, it.Failures))
		}
		label := "accepted"
		switch {
		case it.Best:
			label = "best"
			w.span.SetAttributes(attribute.Bool(keyBest, true))
		case it.Rejected != "":
			label = "rejected"
			w.span.SetAttributes(attribute.Bool(keyRejected, true))
		}
		if it.Score != nil {
			name := cmp.Or(it.Scorer, "score")
			attrs := []attribute.KeyValue{attribute.String(keyEvaluation, name), attribute.Float64(keyScore, *it.Score),
				attribute.String(keyScoreLabel, label)}
			if o.cfg.Content && it.Rejected != "" {
				attrs = append(attrs, attribute.String(keyScoreExplains, it.Rejected))
			}
			w.span.AddEvent(eventEvaluation, trace.WithAttributes(attrs...))
		}
		w.end(err)
	})
}

// Stopped implements [observe.Observer].
func (o *Observer) Stopped(ctx context.Context, s observe.Stop) {
	w, _ := ctx.Value(workKey{}).(*work)
	if w == nil {
		return
	}
	attrs := []attribute.KeyValue{attribute.String(keyStopReason, s.Reason), attribute.Int(keyIterations, s.Iterations)}
	if s.BestScore != nil {
		attrs = append(attrs, attribute.Float64(keyBestScore, *s.BestScore), attribute.Int(keyBestIteration, s.BestIteration))
	}
	w.span.SetAttributes(attrs...)
	if s.Outermost && w.run != nil {
		w.run.span.SetAttributes(attribute.String(keyStopReason, s.Reason))
	}
}

// ModelCall implements [observe.Observer].
func (o *Observer) ModelCall(ctx context.Context, c *observe.ModelCall) (context.Context, func(error)) {
	provider := cmp.Or(c.Provider, otherError)
	known := []attribute.KeyValue{
		attribute.String(keyOperation, opChat), attribute.String(keyProvider, provider),
		attribute.String(keyRequestModel, c.Model),
	}
	attrs := append(known[:len(known):len(known)], attribute.String(keyAgent, c.Agent),
		attribute.Int(keyAttempt, c.Attempt))
	if cfg := c.Request.Config; cfg != nil {
		if cfg.MaxOutputTokens > 0 {
			attrs = append(attrs, attribute.Int(keyMaxTokens, int(cfg.MaxOutputTokens)))
		}
		if cfg.Temperature != nil {
			attrs = append(attrs, attribute.Float64(keyTemperature, float64(*cfg.Temperature)))
		}
		if kind := outputType(cfg); kind != "" {
			attrs = append(attrs, attribute.String(keyOutputType, kind))
		}
	}
	if o.cfg.Content {
		attrs = append(attrs, contentOf(c.Request)...)
	}
	ctx, w := o.begin(ctx, opChat+" "+c.Model, trace.SpanKindClient, "", attrs)
	if w.agent != nil {
		w.agent.span.SetAttributes(attribute.String(keyProvider, provider), attribute.String(keyRequestModel, c.Model))
	}
	ctx, exchange := model.WithExchange(ctx)
	return ctx, w.once(func(err error) {
		sent := exchange()
		if sent.Server != "" {
			server := []attribute.KeyValue{attribute.String(keyServer, sent.Server), attribute.Int(keyPort, sent.Port)}
			known = append(known, server...)
			w.span.SetAttributes(server...)
		}
		if sent.ResponseID != "" {
			w.span.SetAttributes(attribute.String(keyResponseID, sent.ResponseID))
		}
		if r := c.Response; r != nil {
			if err == nil && r.ErrorCode != "" {
				err = &refusal{r.ErrorCode, r.ErrorMessage}
			}
			if r.ModelVersion != "" {
				version := attribute.String(keyResponseModel, r.ModelVersion)
				known = append(known, version)
				w.span.SetAttributes(version)
			}
			o.answered(ctx, w, r, sent.FinishReason, known)
		}
		o.model.Record(ctx, w.end(err), measurement(err, known...))
	})
}

// outputType is the form of answer that a request asks for; empty if it asks for none.
func outputType(cfg *genai.GenerateContentConfig) string {
	switch {
	case cfg.ResponseMIMEType == "application/json", cfg.ResponseSchema != nil, cfg.ResponseJsonSchema != nil:
		return "json"
	case cfg.ResponseMIMEType == "text/plain":
		return "text"
	}
	return ""
}

// answered records a model's answer in its span. finish is the provider's own word for why it has ended, if that is known.
func (o *Observer) answered(ctx context.Context, w *work, r *model.LLMResponse, finish string, known []attribute.KeyValue) {
	if finish = cmp.Or(finish, strings.ToLower(string(r.FinishReason))); finish != "" {
		w.span.SetAttributes(attribute.StringSlice(keyFinish, []string{finish}))
	}
	if o.cfg.Content && r.Content != nil {
		w.span.SetAttributes(attribute.String(keyOutputMessages, messages(r.Content)))
	}
	if r.UsageMetadata == nil {
		return
	}
	used := model.Used(r.UsageMetadata)
	in, out := used.InputTokens, used.OutputTokens
	if used.CachedTokens > 0 {
		w.span.SetAttributes(attribute.Int64(keyCachedTokens, used.CachedTokens))
	}
	if n := used.CacheWriteTokens + used.CacheWrite1hTokens; n > 0 {
		w.span.SetAttributes(attribute.Int64(keyCacheWrites, n))
	}
	if n := model.ThoughtTokens(r.UsageMetadata); n > 0 {
		w.span.SetAttributes(attribute.Int64(keyReasoning, n))
	}
	for at := w; at != nil; at = at.outer {
		at.in.Add(in)
		at.out.Add(out)
	}
	for kind, n := range map[string]int64{"input": in, "output": out} {
		attrs := append(known[:len(known):len(known)], attribute.String(keyTokenType, kind))
		o.tokens.Record(ctx, n, metric.WithAttributeSet(attribute.NewSet(attrs...)))
	}
}

// ToolCall implements [observe.Observer].
func (o *Observer) ToolCall(ctx context.Context, c *observe.ToolCall) (context.Context, func(error)) {
	attrs := []attribute.KeyValue{
		attribute.String(keyOperation, opTool), attribute.String(keyTool, c.Tool), attribute.String(keyToolType, "function"),
		attribute.String(keyToolCall, c.ID), attribute.String(keyAgent, c.Agent),
	}
	if c.Description != "" {
		attrs = append(attrs, attribute.String(keyToolAbout, c.Description))
	}
	if o.cfg.Content {
		attrs = append(attrs, attribute.String(keyToolArguments, text(c.Arguments)))
	}
	name := c.Tool
	ctx, w := o.begin(ctx, opTool+" "+name, trace.SpanKindInternal, "", attrs)
	return ctx, w.once(func(err error) {
		if o.cfg.Content && c.Result != nil {
			w.span.SetAttributes(attribute.String(keyToolResult, text(c.Result)))
		}
		o.tool.Record(ctx, w.end(err), measurement(err, attribute.String(keyTool, name)))
	})
}

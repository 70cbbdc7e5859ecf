// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/refrain-dev/refrain/internal/values/propagate"
)

// Handler adds the runs that a request starts to the trace in the request's header traceparent.
func (o *Observer) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := o.cfg.Propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Within returns a context in the trace that environment variables such as TRACEPARENT name.
func (o *Observer) Within(ctx context.Context, getenv func(string) string) context.Context {
	m := make(propagation.MapCarrier)
	for _, name := range o.cfg.Propagator.Fields() {
		if value := getenv(propagate.Variable(name)); value != "" {
			m[name] = value
		}
	}
	return o.cfg.Propagator.Extract(ctx, m)
}

// LogHandler returns a handler that adds trace_id and span_id to the records that are logged with the context of a span.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String(logTrace, sc.TraceID().String()), slog.String(logSpan, sc.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

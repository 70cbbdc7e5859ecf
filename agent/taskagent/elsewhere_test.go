// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/internal/values/propagate"
)

// A request that another machine sends belongs to the trace of the run, as one of this machine does.
func TestRequestElsewhereBelongsToTheTrace(t *testing.T) {
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer srv.Close()
	spec, err := json.Marshal(map[string]any{"method": "GET", "url": srv.URL, "timeout": time.Minute, "size_limit": 1000})
	if err != nil {
		t.Fatal(err)
	}
	ctx := propagate.With(t.Context(), func(context.Context) map[string]string { return map[string]string{"traceparent": "00-1-2-01"} })
	if _, err := (taskagent.Here{}).Do(ctx, &elsewhere.Task{ID: "t", Kind: taskagent.KindHTTP, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	if got.Get("traceparent") != "00-1-2-01" {
		t.Errorf("the request has the headers %v", got)
	}
}

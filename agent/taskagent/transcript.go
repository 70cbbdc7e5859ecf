// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// TranscriptPrefix begins the names of artifacts with the transcripts of coding agents.
const TranscriptPrefix = "transcript."

// TranscriptName returns the name of the artifact with what the coding agent of a step has said and done: its messages, the calls of its
// tools and their results, without secrets. Each attempt is a version. At most 512 kB are kept of an attempt, and 8 kB of a result; the
// text says what is left out.
func TranscriptName(step session.Address) string {
	return TranscriptPrefix + strings.ReplaceAll(string(step), "/", ".")
}

// keepTranscript stores a transcript as an artifact of the step. Without an artifact service it does nothing. It returns a warning if the
// transcript could not be stored, which costs the step nothing else.
func keepTranscript(ctx agent.InvocationContext, text string) (warning string) {
	files := ctx.Artifacts()
	if text == "" || files == nil {
		return ""
	}
	if _, err := files.Save(context.WithoutCancel(ctx), TranscriptName(drive.At(ctx).Address()), genai.NewPartFromText(text)); err != nil {
		return fmt.Sprintf("the transcript was not kept: %v", err)
	}
	return ""
}

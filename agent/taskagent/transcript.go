// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/process/child"
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

// keepTranscript stores a transcript as an artifact of the step, in place of what was stored while the agent worked. Without an artifact
// service it does nothing. It returns a warning if the transcript could not be stored, which costs the step nothing else.
func (p *process) keepTranscript(ctx agent.InvocationContext, text string) (warning string) {
	files := ctx.Artifacts()
	if text == "" || files == nil {
		return ""
	}
	err := p.replaceTranscript(ctx, text)
	if errors.Is(err, errors.ErrUnsupported) {
		_, err = files.Save(context.WithoutCancel(ctx), TranscriptName(drive.At(ctx).Address()), genai.NewPartFromText(text))
	}
	if err != nil {
		return fmt.Sprintf("the transcript was not kept: %v", err)
	}
	return ""
}

// replaceTranscript stores the transcript of the attempt in place of what the last call stored. It returns [errors.ErrUnsupported] if the
// artifacts cannot replace a version.
func (p *process) replaceTranscript(ctx agent.InvocationContext, text string) error {
	files, ok := ctx.Artifacts().(replacer)
	if !ok {
		return errors.ErrUnsupported
	}
	saved, err := files.SaveVersion(context.WithoutCancel(ctx), TranscriptName(drive.At(ctx).Address()), genai.NewPartFromText(text), p.transcript)
	if err == nil && saved != nil {
		p.transcript = saved.Version
	}
	return err
}

// replacer is implemented by artifacts that can replace a version.
type replacer interface {
	SaveVersion(ctx context.Context, name string, data *genai.Part, version int64) (*artifact.SaveResponse, error)
}

// The time between two times of storing the transcript of an agent that works, and what it grows by for each KiB of the transcript.
const transcriptEvery, transcriptSlower = 2 * time.Second, 32 * time.Millisecond

// unfinishedTranscript ends a transcript that was stored while the agent worked.
const unfinishedTranscript = "\n\n(The agent was still at work when this was stored.)"

// storeMeanwhile stores the transcript of a coding agent again and again until stop is called, so that an attempt has one even if this
// process is killed. It ignores errors, because keepTranscript reports them.
func (p *process) storeMeanwhile(script *codingcli.Transcript) (stop func()) {
	if p.store == nil {
		return func() {}
	}
	secrets := child.Secrets(p.Env)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for stored := ""; ; {
			select {
			case <-done:
				return
			case <-time.After(transcriptEvery + time.Duration(len(stored)>>10)*transcriptSlower):
			}
			if text := cleanText(secrets.StrikeWhole(script.String())); text != stored {
				stored = text
				_ = p.store(text + unfinishedTranscript)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

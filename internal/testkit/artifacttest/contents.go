// SPDX-License-Identifier: Apache-2.0

package artifacttest

import (
	"bytes"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"
)

// contents checks that a part comes back as it was saved.
func (s *suite) contents() {
	named := genai.NewPartFromBytes([]byte("%PDF"), "application/pdf")
	named.InlineData.DisplayName = "Report é.pdf"
	both := genai.NewPartFromBytes([]byte{1}, "image/png")
	both.Text = "a picture"
	signed := genai.NewPartFromText("thought")
	signed.Thought, signed.ThoughtSignature = true, []byte{0, 255}
	for _, tt := range []struct {
		name string
		part *genai.Part
	}{
		{"text", genai.NewPartFromText("é\r\n{{a}}\x00<&>")},
		{"text that is no UTF-8", genai.NewPartFromText("a\xff\xfe")},
		{"long text", genai.NewPartFromText(strings.Repeat("lines\n", 200_000))},
		{"data", genai.NewPartFromBytes([]byte{0, 1, 254, 255, '\n', '\r'}, "application/octet-stream")},
		{"no data", genai.NewPartFromBytes([]byte{}, "image/png")},
		{"long data", genai.NewPartFromBytes(bytes.Repeat([]byte{0, 'a', 255}, 1<<19), "image/png")},
		{"data without a type", genai.NewPartFromBytes([]byte{1}, "")},
		{"type with parameters", genai.NewPartFromBytes([]byte("a"), `text/plain; charset="utf-8"`)},
		{"display name", named},
		{"text and data", both},
		{"thought", signed},
	} {
		s.savePart(one, tt.name, tt.part, 0)
		got, err := s.load(tt.name, 0)
		if err != nil {
			s.Errorf("Load %q: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.part, got, cmp.Comparer(bytes.Equal)); diff != "" {
			s.Errorf("%s: (-saved +loaded):\n%.2000s", tt.name, diff)
		}
	}
}

func (s *suite) descriptions() {
	before := time.Now().Add(-time.Second)
	s.save("a", "text")
	s.savePart(one, "a", genai.NewPartFromBytes([]byte{1}, "image/png"), 0)
	for version, want := range map[int64]string{1: "text/plain", 2: "image/png", 0: "image/png"} {
		v, err := s.describe("a", version)
		if err != nil {
			s.Errorf("GetArtifactVersion %d: %v", version, err)
			continue
		}
		if n := v.Version; v.MimeType != want || version != 0 && n != version || version == 0 && n != 2 {
			s.Errorf("GetArtifactVersion %d: version %d, type %q, want type %q", version, n, v.MimeType, want)
		}
		if at := v.CreateTime; at.Before(before) || at.After(time.Now().Add(time.Second)) {
			s.Errorf("GetArtifactVersion %d: created %v, which is not now", version, at)
		}
	}
}

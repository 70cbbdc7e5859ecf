// SPDX-License-Identifier: Apache-2.0

package skilltoolset_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/skilltoolset"
	"github.com/refrain-dev/refrain/tool/skilltoolset/skill"
)

var files = fstest.MapFS{
	"haiku/SKILL.md":           {Data: []byte("---\nname: haiku\ndescription: Writes <short> poems.\n---\nWrite three lines. See references/form.md.\n")},
	"haiku/references/form.md": {Data: []byte("5, 7, 5 syllables")},
	"haiku/assets/frog.png":    {Data: []byte("\x89PNG\xff")},
	"secret.txt":               {Data: []byte("secret")},
}

// ask runs an agent with the skills of a file system, whose model answers from a script.
func ask(ctx context.Context, fsys fstest.MapFS, answers ...scripted.Answer) (said string, err error) {
	set, err := skilltoolset.New(ctx, skilltoolset.Config{Source: skill.NewFileSystemSource(fsys)})
	if err != nil {
		return "", err
	}
	llm, err := scripted.New(scripted.Script{Answers: answers})
	if err != nil {
		return "", err
	}
	a, err := llmagent.New(llmagent.Config{Name: "poet", Model: llm, Toolsets: []tool.Toolset{set}})
	if err != nil {
		return "", err
	}
	r, err := runner.NewInMemory("app", a)
	if err != nil {
		return "", err
	}
	msg := genai.NewContentFromText("A frog jumps.", genai.RoleUser)
	for ev, err := range r.Run(ctx, "ana", "s1", msg, agent.RunConfig{}) {
		if err != nil {
			return said, err
		}
		said += ev.Text()
	}
	return said, nil
}

func call(match, name string, args map[string]any) scripted.Answer {
	return scripted.Answer{MatchRequest: match, Calls: []scripted.Call{{Name: name, Args: args}}}
}

// The model sees which skills there are, loads one, and reads its file.
func Example() {
	fmt.Println(ask(context.Background(), files,
		call(`(?s)call .load_skill.*<name>haiku</name>\n<description>Writes &lt;short&gt; poems.</description>`, "load_skill",
			map[string]any{"name": "haiku"}),
		call(`Write three lines\. See references/form\.md`, "load_skill_resource",
			map[string]any{"skill_name": "haiku", "resource_path": "references/form.md"}),
		scripted.Answer{MatchRequest: "5, 7, 5 syllables", Text: "An old silent pond."}))
	// Output: An old silent pond. <nil>
}

// What there is not, the model is told, and the run goes on.
func TestModelIsToldWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"list_skills", nil, "available_skills"},
		{"load_skill", map[string]any{"name": "tanka"}, "skill not found"},
		{"load_skill", map[string]any{"name": "../haiku"}, "invalid skill name"},
		{"load_skill_resource", map[string]any{"skill_name": "haiku", "resource_path": "../secret.txt"}, "invalid resource path"},
		{"load_skill_resource", map[string]any{"skill_name": "haiku", "resource_path": "assets/none.txt"}, "resource not found"},
		{"load_skill_resource", map[string]any{"skill_name": "haiku", "resource_path": "assets/frog.png"}, "is not a text"},
	} {
		said, err := ask(t.Context(), files, call("", tt.tool, tt.args),
			scripted.Answer{MatchRequest: "user: answer " + tt.tool + " .*" + tt.want, Text: "Well."})
		if err != nil || said != "Well." {
			t.Errorf("%s %v: %q, %v", tt.tool, tt.args, said, err)
		}
	}
}

func TestNoSkills(t *testing.T) {
	said, err := ask(t.Context(), fstest.MapFS{"readme.txt": {}}, scripted.Answer{MatchRequest: "available_skills", Text: "Some."},
		scripted.Answer{Text: "None."})
	if err != nil || said != "None." {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := skilltoolset.New(t.Context(), skilltoolset.Config{}); err == nil || !strings.Contains(err.Error(), "Source") {
		t.Errorf("without a source: error %v", err)
	}
}

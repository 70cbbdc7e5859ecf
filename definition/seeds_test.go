// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
)

// C10, C33, T9, LOOP 34: the examples that this project was begun from have real
// defects, and the check before a run finds them: four keys that nobody writes,
// each with the key that was meant, and decisions that a finalizer reads although
// the turn that ends the loop never writes them.
func TestChecksFindTheDefectsOfTheFirstExamples(t *testing.T) {
	unwritten := map[string]string{
		"marketing": "feedback_anterior", "optimization": "performance_anterior", "development": "requisitos", "fragments": "dados_entrada",
	}
	files, err := filepath.Glob("testdata/seeds/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			d, err := definition.Load(file)
			found, _ := errors.AsType[definition.Problems](err)
			if err == nil {
				found = slices.Concat(d.Warnings(), d.Notes(), d.Worst(definition.Assumed{}).Notes())
			}
			has := func(code, text string) bool {
				return slices.ContainsFunc(found, func(p *definition.Problem) bool { return p.Code == code && strings.Contains(p.Message, text) })
			}
			if key := unwritten[name]; key != "" && !has(definition.CodeUnknownKey, "{{"+key+"}}") {
				t.Errorf("nothing is said of %s", key)
			}
			if unwritten[name] == "" && err != nil {
				t.Errorf("what was mended is refused: %v", err)
			}
			if name == "marketing-fixed" && !has(definition.CodeExitKey, "{{decisao_parada}}") || name == "document" &&
				!has(definition.CodeExitKey, "{{current_document}}") {
				t.Errorf("nothing is said of the key that an exit leaves as it was")
			}
			var b strings.Builder
			if err := found.Format(&b); err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(readFile(t, golden), b.String()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

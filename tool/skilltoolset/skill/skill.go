// SPDX-License-Identifier: Apache-2.0

// Package skill reads skills: folders with instructions for a task, which a model loads when it needs them. The
// format is that of https://agentskills.io.
//
//	source := skill.NewFileSystemSource(os.DirFS("skills"))
//	set, err := skilltoolset.New(ctx, skilltoolset.Config{Source: source})
//
// A skill is a folder with a file SKILL.md, which has YAML with a name and a description between two lines "---", and
// below it the instructions. Further files are in the folders references, assets and scripts. Package skill reads the
// files of a skill and never runs any.
package skill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// The errors of a [Source].
var (
	ErrInvalidSkillName    = errors.New("invalid skill name")
	ErrInvalidFrontmatter  = errors.New("invalid frontmatter")
	ErrSkillNotFound       = errors.New("skill not found")
	ErrDuplicateSkill      = errors.New("duplicate skill")
	ErrInvalidResourcePath = errors.New("invalid resource path")
	ErrResourceNotFound    = errors.New("resource not found")
)

// Source provides skills. It is safe for concurrent use. Names and paths may come from a model, so a source refuses
// any that it does not have. Its errors wrap those of this package.
type Source interface {
	// ListFrontmatters returns the frontmatter of every skill.
	ListFrontmatters(ctx context.Context) ([]*Frontmatter, error)
	// ListResources returns the paths of a skill's files below subpath; "." means all. Paths are relative to the skill.
	ListResources(ctx context.Context, name, subpath string) ([]string, error)
	// LoadFrontmatter returns the frontmatter of one skill.
	LoadFrontmatter(ctx context.Context, name string) (*Frontmatter, error)
	// LoadInstructions returns the instructions of a skill.
	LoadInstructions(ctx context.Context, name string) (string, error)
	// LoadResource opens a file of a skill. The caller closes it.
	LoadResource(ctx context.Context, name, resourcePath string) (io.ReadCloser, error)
}

// Frontmatter describes a skill. Callers must not change it.
type Frontmatter struct {
	// Name has 1 to 64 lower-case letters, digits and single hyphens. It is also the name of the skill's folder.
	Name string `yaml:"name" json:"name"`
	// Description says what the skill is for and when to use it, in 1 to 1024 bytes.
	Description string `yaml:"description" json:"description"`
	License     string `yaml:"license" json:"license,omitempty"`
	// Compatibility says what the skill needs, in at most 500 bytes.
	Compatibility string            `yaml:"compatibility" json:"compatibility,omitempty"`
	Metadata      map[string]string `yaml:"metadata" json:"metadata,omitempty"`
	// AllowedTools lists the tools that the skill uses. It informs the model; nothing enforces it.
	AllowedTools []string `yaml:"-" json:"allowed-tools,omitempty"`
}

// ParseBytes returns the frontmatter and the instructions of a SKILL.md. Errors: [ErrInvalidFrontmatter].
func ParseBytes(content []byte) (*Frontmatter, string, error) {
	head, instructions, err := split(content)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrInvalidFrontmatter, err)
	}
	var file struct {
		Frontmatter `yaml:",inline"`
		Tools       any `yaml:"allowed-tools"`
	}
	if err := yaml.Load(head, &file, yaml.WithKnownFields()); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrInvalidFrontmatter, err)
	}
	f := &file.Frontmatter
	if f.AllowedTools, err = toolsIn(file.Tools); err == nil {
		err = Validate(f)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrInvalidFrontmatter, err)
	}
	return f, string(instructions), nil
}

// split cuts a file at the second of two lines of three hyphens.
func split(content []byte) (head, rest []byte, err error) {
	line, rest, _ := bytes.Cut(content, []byte("\n"))
	if string(bytes.TrimSuffix(line, []byte("\r"))) != "---" {
		return nil, nil, errors.New("the file does not begin with a line ---")
	}
	begin := rest
	for len(rest) > 0 {
		before := len(begin) - len(rest)
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if string(bytes.TrimSuffix(line, []byte("\r"))) == "---" {
			return begin[:before], rest, nil
		}
	}
	return nil, nil, errors.New("no line --- ends the frontmatter")
}

// toolsIn reads a YAML list of tools, or a string with spaces or commas between them, as in "Read Bash(git add:*)".
func toolsIn(v any) ([]string, error) {
	wrong := errors.New("allowed-tools: want a list of texts, or a text with spaces between the tools")
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		depth := 0
		return strings.FieldsFunc(v, func(r rune) bool {
			switch r {
			case '(':
				depth++
			case ')':
				depth = max(depth-1, 0)
			}
			return depth == 0 && (r == ',' || unicode.IsSpace(r))
		}), nil
	case []any:
		var all []string
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return nil, wrong
			}
			all = append(all, text)
		}
		return all, nil
	}
	return nil, wrong
}

// Validate returns an error if a frontmatter breaks the rules of its fields.
func Validate(f *Frontmatter) error {
	switch {
	case f == nil:
		return errors.New("there is no frontmatter")
	case !validName(f.Name):
		return fmt.Errorf("name %q: want 1 to 64 small letters and digits, with single hyphens between them", f.Name)
	case f.Description == "" || len(f.Description) > 1024:
		return fmt.Errorf("description: want 1 to 1024 bytes, not %d", len(f.Description))
	case len(f.Compatibility) > 500:
		return fmt.Errorf("compatibility: want at most 500 bytes, not %d", len(f.Compatibility))
	}
	return nil
}

func validName(name string) bool {
	if name == "" || len(name) > 64 || name[0] == '-' || name[len(name)-1] == '-' || strings.Contains(name, "--") {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

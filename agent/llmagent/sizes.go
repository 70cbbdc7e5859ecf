// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"reflect"
	"sync"

	"google.golang.org/genai"
)

// maxSizes limits the number of remembered sizes.
const maxSizes = 256

// sizes remembers how long schemas and declarations of tools are as JSON, which are the
// same in each request.
type sizes struct {
	mu    sync.Mutex
	known map[any]sized
}

type sized struct {
	bytes int64
	of    any // so that nothing else has its address
}

// tools is the length of tools as JSON. A tool has its declarations, and rarely more.
func (s *sizes) tools(tools []*genai.Tool) (n int64) {
	for _, t := range tools {
		if t == nil {
			continue
		}
		rest := *t
		rest.FunctionDeclarations = nil
		n += int64(len(`{"functionDeclarations":[]},`))
		if !reflect.ValueOf(rest).IsZero() {
			n += int64(len(asJSON(rest)))
		}
		for _, d := range t.FunctionDeclarations {
			n += 1 + s.declaration(d)
		}
	}
	return n
}

func (s *sizes) declaration(d *genai.FunctionDeclaration) int64 {
	if d == nil {
		return 0
	}
	key := *d // without what it shares with no other request
	key.ParametersJsonSchema, key.ResponseJsonSchema = identity(d.ParametersJsonSchema), identity(d.ResponseJsonSchema)
	return s.of(key, d)
}

// of returns the length of v as JSON. The key identifies v.
func (s *sizes) of(key, v any) int64 {
	if !reflect.ValueOf(key).Comparable() {
		return int64(len(asJSON(v)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.known[key]
	if ok {
		return known.bytes
	}
	if len(s.known) >= maxSizes {
		clear(s.known)
	}
	if s.known == nil {
		s.known = make(map[any]sized)
	}
	known = sized{int64(len(asJSON(v))), v}
	s.known[key] = known
	return known.bytes
}

// mapID is a map by its address.
type mapID uintptr

// identity returns a comparable key for a schema of any type: the schema itself, or the address of
// its map.
func identity(schema any) any {
	if v := reflect.ValueOf(schema); v.Kind() == reflect.Map {
		return mapID(v.Pointer())
	}
	return schema
}

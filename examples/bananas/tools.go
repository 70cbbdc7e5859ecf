// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// pictureFile is the artifact that the tools share.
const pictureFile = "bananas.png"

// studio paints pictures as image generators do: beautiful, but often with
// another number of things in it than was asked for.
type studio struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newStudio(seed uint64) *studio { return &studio{rng: rand.New(rand.NewPCG(seed, seed))} }

func (s *studio) paint(n int) ([]byte, error) {
	if n < 0 || n > room {
		return nil, fmt.Errorf("there is room for 0 to %d bananas, not for %d", room, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	miss := []int{-2, -1, 0, 0, 1, 2}[s.rng.IntN(6)]
	return paint(s.rng, min(max(n+miss, 0), room))
}

type generateArgs struct {
	Count int `json:"count" jsonschema:"how many bananas there should be in it, from 0 to 12"`
}

type generateResult struct {
	File    string `json:"file"`
	Version int64  `json:"version"`
}

type countArgs struct {
	File string `json:"file" jsonschema:"the file name of the picture"`
}

type countResult struct {
	Count int `json:"count"`
}

// newTools returns the two tools of the example. The picture goes from one to
// the other as an artifact: models never see its bytes.
func newTools(s *studio) (generate, countItems tool.Tool, err error) {
	generate, err = functiontool.New(functiontool.Config{
		Name:        "generate_image",
		Description: "Paints a new picture of bananas and says in which file it is.",
	}, func(ctx tool.Context, in generateArgs) (generateResult, error) {
		picture, err := s.paint(in.Count)
		if err != nil {
			return generateResult{}, err
		}
		saved, err := ctx.Artifacts().Save(ctx, pictureFile, genai.NewPartFromBytes(picture, "image/png"))
		if err != nil {
			return generateResult{}, err
		}
		return generateResult{pictureFile, saved.Version}, nil
	})
	if err != nil {
		return nil, nil, err
	}
	countItems, err = functiontool.New(functiontool.Config{
		Name:        "count_food_items",
		Description: "Looks at a picture and says how many bananas are in it.",
	}, func(ctx tool.Context, in countArgs) (countResult, error) {
		n, err := countIn(ctx, ctx.Artifacts(), in.File)
		if err != nil {
			return countResult{}, err
		}
		return countResult{n}, ctx.State().Set("counted", n)
	})
	return generate, countItems, err
}

// countIn returns the number of bananas in the last version of a picture.
func countIn(ctx context.Context, files agent.Artifacts, name string) (int, error) {
	loaded, err := files.Load(ctx, name)
	if err != nil {
		return 0, err
	}
	if loaded.Part.InlineData == nil {
		return 0, fmt.Errorf("%s is no picture", name)
	}
	return count(loaded.Part.InlineData.Data)
}

// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strconv"
	"strings"
)

// BytesPerToken is about how many bytes of text a token has, for estimates before a provider has counted.
const BytesPerToken = 4

// Caches has the rules of a provider's prompt cache, which keeps the beginnings of requests and
// charges less for reading them again. The zero value is for a provider without a cache, or with an
// unknown one.
type Caches struct {
	// MinTokens is the smallest number of tokens of a beginning that is cached; 0 means that
	// nothing is cached.
	MinTokens int
	// Block is the number of tokens by which a cached beginning grows; 0 means 1.
	Block int
	// Asked says that the provider caches only the parts that a [CacheHint] asks for. Other providers
	// cache every beginning.
	Asked bool
	// Charged says that a token that is written into the cache costs more than other tokens.
	Charged bool
}

// CachesOf returns the rules of a provider's cache for one of its models. The provider is named as in a
// definition, or as OpenTelemetry does. An unknown model gets the largest minimum of its provider.
//
// The rules are those of
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching,
// https://platform.openai.com/docs/guides/prompt-caching and
// https://ai.google.dev/gemini-api/docs/caching.
func CachesOf(provider, name string) Caches {
	switch provider {
	case "anthropic":
		return Caches{MinTokens: least(name, 4096, anthropicMinima), Asked: true, Charged: true}
	case "openai":
		return Caches{MinTokens: 1024, Block: 128, Charged: chargesWrites(name)}
	case "gemini", "gcp.gemini":
		return Caches{MinTokens: least(name, 4096, geminiMinima)}
	}
	return Caches{}
}

// chargesWrites reports whether OpenAI charges for what a model's cache keeps: since GPT-5.6.
func chargesWrites(name string) bool {
	version, ok := strings.CutPrefix(name, "gpt-")
	version, _, _ = strings.Cut(version, "-")
	n, err := strconv.ParseFloat(version, 64)
	return ok && err == nil && n >= 5.6
}

// minima are minima by a part of a model's name.
type minima []struct {
	part   string
	tokens int
}

var anthropicMinima = minima{
	{"opus-4-0", 1024}, {"opus-4-1", 1024}, {"opus-4-2025", 1024}, {"sonnet-4-0", 1024}, {"sonnet-4-2025", 1024},
	{"sonnet-4-5", 1024}, {"3-7-sonnet", 1024}, {"3-5-sonnet", 1024}, {"3-opus", 1024},
	{"sonnet-4-6", 2048}, {"3-5-haiku", 2048}, {"3-haiku", 2048},
}

var geminiMinima = minima{{"2.5-flash", 1024}}

func least(name string, otherwise int, known minima) int {
	for _, m := range known {
		if strings.Contains(name, m.part) {
			return m.tokens
		}
	}
	return otherwise
}

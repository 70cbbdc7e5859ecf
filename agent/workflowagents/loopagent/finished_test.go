// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// The end of a step is written as package json writes it, with the fields sorted by name, whichever fields
// are set: also one that is added to the structs later.
func TestFinishedIsWrittenAsPackageJSONDoes(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "draft", "a b", "\"", "<", "é", "\x00", "\u2028"}
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(texts[dice.IntN(len(texts))])
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(dice.Int64N(1e12) - 1e11)
		case reflect.Float64:
			v.SetFloat([]float64{0, 1e-9, 0.25, 1e22, 12.0625, 1e-6}[dice.IntN(6)])
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				v.SetBytes([]byte(`{"calls":1}`))
				return
			}
			v.Set(reflect.MakeSlice(v.Type(), dice.IntN(3), 3))
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]any{"k": 1.5}))
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				zone := time.FixedZone("", (dice.IntN(25)-12)*3600)
				v.Set(reflect.ValueOf(time.Unix(dice.Int64N(1e9), dice.Int64N(1e9)).In(zone)))
				return
			}
			fill(v.Field(dice.IntN(v.NumField())))
		}
	}
	fast := 0
	for range 20000 {
		f := finished{Outcome: &loop.Outcome{}}
		for range dice.IntN(5) {
			part := reflect.ValueOf(f.Outcome).Elem()
			if dice.IntN(4) == 0 {
				part = reflect.ValueOf(&f.StepFinished).Elem()
			}
			field := part.Type().Field(dice.IntN(part.NumField()))
			if part.Type() == reflect.TypeFor[mark.StepFinished]() && field.Name == "Outcome" {
				continue // the other one stands in its place
			}
			fill(part.FieldByIndex(field.Index))
		}
		want, err := json.Marshal(&f)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := appendFinished(nil, &f.StepFinished, f.Outcome)
		if !ok {
			continue
		}
		if fast++; string(got) != string(sorted(t, want)) {
			t.Fatalf("%+v\n got %s\nwant %s", f, got, sorted(t, want))
		}
	}
	if fast < 5000 {
		t.Errorf("%d of 20000 steps are written here", fast)
	}
}

// sorted is JSON with the fields of all objects sorted by name, and the same digits.
func sorted(t *testing.T, data []byte) []byte {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

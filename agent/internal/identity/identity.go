// SPDX-License-Identifier: Apache-2.0

// Package identity tells whether two agents are the same one. Anybody can
// implement an agent, so its type may be one that cannot be compared.
package identity

import "reflect"

// IsNil reports whether there is no agent: a is nil, or a nil pointer.
func IsNil(a any) bool {
	if a == nil {
		return true
	}
	v := reflect.ValueOf(a)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Same reports whether a and b are one agent. Two agents that cannot be
// compared are never the same.
func Same(a, b any) bool {
	return a != nil && b != nil && CanCompare(a) && CanCompare(b) && a == b
}

// CanCompare reports whether a can be compared with ==. Its type alone does
// not tell: it may contain an interface.
func CanCompare(a any) bool { return reflect.ValueOf(a).Comparable() }

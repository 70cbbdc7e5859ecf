// SPDX-License-Identifier: Apache-2.0

package scheduler

import "github.com/refrain-dev/refrain/definition"

// Problems returns the problems of the present text of the file.
func (s *Scheduler) Problems() definition.Problems {
	_, problems := s.read()
	return problems
}

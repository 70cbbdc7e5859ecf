// SPDX-License-Identifier: Apache-2.0

package expr

import "context"

// AskCEL is Eval without short cuts.
func (p *Program) AskCEL(vals map[string]any) (any, error) {
	return p.evalCEL(context.Background(), Values(vals))
}

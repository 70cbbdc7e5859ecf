// SPDX-License-Identifier: Apache-2.0

package child

// Temporary is where the input is that cannot be in memory.
var Temporary = temporary

// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"database/sql"

	"github.com/jackc/pgx/v5/pgconn"
)

// OpenDB returns a database of the driver, without a store.
func OpenDB(dsn string) (*sql.DB, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector{config}), nil
}

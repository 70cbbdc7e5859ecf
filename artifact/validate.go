// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrInvalid reports that a request lacks a field, or that its file name is not allowed.
var ErrInvalid = errors.New("invalid artifact request")

// Validate checks that the request is complete. Errors: [ErrInvalid].
func (r *SaveRequest) Validate() error {
	part := ""
	if r.Part != nil {
		part = "is there"
	}
	if err := require(field{"AppName", r.AppName}, field{"UserID", r.UserID}, field{"SessionID", r.SessionID},
		field{"FileName", r.FileName}, field{"Part", part}); err != nil {
		return err
	}
	if err := validate(r.AppName, r.UserID, r.SessionID, r.FileName, r.Version); err != nil {
		return err
	}
	if r.Part.Text == "" && r.Part.InlineData == nil {
		return fmt.Errorf("%w: file %q has neither text nor inline data", ErrInvalid, r.FileName)
	}
	return nil
}

// Validate checks that the request is complete. Errors: [ErrInvalid].
func (r *LoadRequest) Validate() error {
	return validate(r.AppName, r.UserID, r.SessionID, r.FileName, r.Version)
}

// Validate checks that the request is complete. Errors: [ErrInvalid].
func (r *DeleteRequest) Validate() error {
	return validate(r.AppName, r.UserID, r.SessionID, r.FileName, r.Version)
}

// Validate checks that the request is complete. Errors: [ErrInvalid].
func (r *ListRequest) Validate() error {
	return require(field{"AppName", r.AppName}, field{"UserID", r.UserID}, field{"SessionID", r.SessionID})
}

// Validate checks that the request is complete. Errors: [ErrInvalid].
func (r *VersionsRequest) Validate() error {
	return validate(r.AppName, r.UserID, r.SessionID, r.FileName, 0)
}

// Validate checks that the request is complete. Errors: [ErrInvalid].
func (r *GetArtifactVersionRequest) Validate() error {
	return validate(r.AppName, r.UserID, r.SessionID, r.FileName, r.Version)
}

func validate(app, user, session, file string, version int64) error {
	if err := require(field{"AppName", app}, field{"UserID", user}, field{"SessionID", session},
		field{"FileName", file}); err != nil {
		return err
	}
	if err := validateFileName(file); err != nil {
		return err
	}
	if version < 0 {
		return fmt.Errorf("%w: version %d of file %q is negative", ErrInvalid, version, file)
	}
	return nil
}

// field is a field of a request that must not be empty.
type field struct{ name, value string }

// require names all fields that are empty.
func require(fields ...field) error {
	var missing []string
	for _, f := range fields {
		if f.value == "" {
			missing = append(missing, f.name)
		}
	}
	if missing != nil {
		return fmt.Errorf("%w: %s missing", ErrInvalid, strings.Join(missing, ", "))
	}
	return nil
}

// validateFileName refuses names that could lead out of a store's folder.
func validateFileName(name string) error {
	bare := strings.TrimPrefix(name, KeyPrefixUser)
	switch {
	case bare == "":
		return fmt.Errorf("%w: file name %q is empty", ErrInvalid, name)
	case bare == "." || strings.Contains(bare, ".."):
		return fmt.Errorf("%w: file name %q leads to another folder", ErrInvalid, name)
	case strings.ContainsAny(bare, "/\\\x00"):
		return fmt.Errorf("%w: file name %q has a path separator or a zero byte", ErrInvalid, name)
	case !utf8.ValidString(bare):
		return fmt.Errorf("%w: file name %q is not UTF-8", ErrInvalid, name)
	}
	return nil
}

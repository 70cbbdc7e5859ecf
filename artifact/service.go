// SPDX-License-Identifier: Apache-2.0

// Package artifact keeps files that agents make and read: reports, images,
// test logs. Each save of a name is a new version.
//
//	files := artifact.InMemoryService()
//	_, err := files.Save(ctx, &artifact.SaveRequest{
//		AppName: "app", UserID: "ana", SessionID: "s1", FileName: "report.md",
//		Part: genai.NewPartFromText("# Report"),
//	})
//
// A file belongs to its session, unless its name starts with "user:": then all
// of the user's sessions in the application share it. Names and requests are
// those of ADK for Go. Package disk keeps files in a folder; package
// artifacttest checks a service of one's own.
package artifact

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"google.golang.org/genai"
)

// ErrNotFound: there is no such artifact, or not in that version. It wraps
// [fs.ErrNotExist].
var ErrNotFound = fmt.Errorf("artifact not found: %w", fs.ErrNotExist)

// KeyPrefixUser starts the names of files that all sessions of a user share.
const KeyPrefixUser = "user:"

// Service stores artifacts. It is safe for concurrent use. A request that lacks
// something, or has a bad file name, gets [ErrInvalid] from every method.
type Service interface {
	// Save stores a part as the next version of a file, or as the version
	// that the request names.
	Save(ctx context.Context, req *SaveRequest) (*SaveResponse, error)
	// Load fetches a version of a file. Errors: [ErrNotFound].
	Load(ctx context.Context, req *LoadRequest) (*LoadResponse, error)
	// Delete removes a file, or one version of it. Deleting what is not there
	// is no error.
	Delete(ctx context.Context, req *DeleteRequest) error
	// List gives the names of the files of a session and of its user, sorted.
	List(ctx context.Context, req *ListRequest) (*ListResponse, error)
	// Versions gives the versions of a file, the newest first. Errors:
	// [ErrNotFound].
	Versions(ctx context.Context, req *VersionsRequest) (*VersionsResponse, error)
	// GetArtifactVersion describes a version of a file. Errors: [ErrNotFound].
	GetArtifactVersion(ctx context.Context, req *GetArtifactVersionRequest) (*GetArtifactVersionResponse, error)
}

// SaveRequest asks to store a file.
type SaveRequest struct {
	AppName, UserID, SessionID, FileName string
	// Part is the content: a text or inline data. It is kept as it is, not
	// copied: do not change it afterwards.
	Part *genai.Part
	// Version is optional: 0 makes the next version, another number writes
	// that version, over what is there.
	Version int64
}

// SaveResponse says which version was written, from 1.
type SaveResponse struct{ Version int64 }

// LoadRequest asks for a file.
type LoadRequest struct {
	AppName, UserID, SessionID, FileName string
	// Version is optional: 0 is the latest.
	Version int64
}

// LoadResponse holds the file. The part is shared: do not change it.
type LoadResponse struct{ Part *genai.Part }

// DeleteRequest names what to remove.
type DeleteRequest struct {
	AppName, UserID, SessionID, FileName string
	// Version is optional: 0 removes all versions.
	Version int64
}

// ListRequest asks for the files that a session sees.
type ListRequest struct{ AppName, UserID, SessionID string }

// ListResponse holds file names.
type ListResponse struct{ FileNames []string }

// VersionsRequest asks for the versions of a file.
type VersionsRequest struct{ AppName, UserID, SessionID, FileName string }

// VersionsResponse holds version numbers.
type VersionsResponse struct{ Versions []int64 }

// GetArtifactVersionRequest asks what a version is.
type GetArtifactVersionRequest struct {
	AppName, UserID, SessionID, FileName string
	// Version is optional: 0 is the latest.
	Version int64
}

// GetArtifactVersionResponse holds the description.
type GetArtifactVersionResponse struct{ ArtifactVersion *ArtifactVersion }

// ArtifactVersion describes one version of a file, without its content. The
// type is ADK v2's; in v1 CreateTime was a number of seconds.
type ArtifactVersion struct {
	Version int64
	// CanonicalURI names the content in the store's own scheme; empty if the
	// store has none.
	CanonicalURI string
	// CustomMetadata is what the store knows besides; it may be nil.
	CustomMetadata map[string]any
	CreateTime     time.Time
	MimeType       string
}

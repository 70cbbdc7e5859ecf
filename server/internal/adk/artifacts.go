// SPDX-License-Identifier: Apache-2.0

package adk

import (
	"net/http"
	"strconv"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/operations/problem"
)

func (a *API) artifacts(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	got, err := a.Runs.ArtifactService.List(r.Context(), &artifact.ListRequest{
		AppName: a.Runs.AppName, UserID: a.Runs.UserID, SessionID: k.id()})
	if err != nil {
		return err
	}
	names := got.FileNames
	if names == nil {
		names = []string{}
	}
	return a.Send(w, http.StatusOK, names)
}

func (a *API) artifact(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	version, err := int64(0), error(nil)
	for _, text := range []string{r.PathValue("version"), r.URL.Query().Get("version")} {
		if text == "" {
			continue
		}
		if version, err = strconv.ParseInt(text, 10, 64); err != nil || version < 1 {
			return problem.Bad("%q is not the number of a version", text)
		}
	}
	got, err := a.Runs.ArtifactService.Load(r.Context(), &artifact.LoadRequest{AppName: a.Runs.AppName, UserID: a.Runs.UserID,
		SessionID: k.id(), FileName: r.PathValue("artifact"), Version: version})
	if err != nil {
		return err
	}
	return a.Send(w, http.StatusOK, got.Part)
}

func (a *API) deleteArtifact(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	err := a.Runs.ArtifactService.Delete(r.Context(), &artifact.DeleteRequest{AppName: a.Runs.AppName, UserID: a.Runs.UserID,
		SessionID: k.id(), FileName: r.PathValue("artifact")})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

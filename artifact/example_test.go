// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
)

func ExampleInMemoryService() {
	ctx := context.Background()
	files := artifact.InMemoryService()
	for _, text := range []string{"draft", "final"} {
		_, err := files.Save(ctx, &artifact.SaveRequest{
			AppName: "app", UserID: "ana", SessionID: "s1", FileName: "report.md",
			Part: genai.NewPartFromText(text),
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, version := range []int64{0, 1, 3} {
		res, err := files.Load(ctx, &artifact.LoadRequest{
			AppName: "app", UserID: "ana", SessionID: "s1", FileName: "report.md", Version: version,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Part.Text)
	}
	// Output:
	// final
	// draft
	// version 3 of file "report.md": artifact not found: file does not exist
}

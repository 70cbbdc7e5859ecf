// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
)

func Example() {
	dir, err := os.MkdirTemp("", "artifacts")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	files, err := disk.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()

	ctx := context.Background()
	for _, text := range []string{"# Draft", "# Report"} {
		res, err := files.Save(ctx, &artifact.SaveRequest{
			AppName: "app", UserID: "ana", SessionID: "s1", FileName: "report.md", Part: genai.NewPartFromText(text),
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("version", res.Version)
	}
	res, err := files.Load(ctx, &artifact.LoadRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "report.md"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Part.Text)
	// Output:
	// version 1
	// version 2
	// # Report
}

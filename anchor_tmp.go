package refrain
import (
 _ "cel.dev/cel-go/cel"
 _ "google.golang.org/genai"
 _ "go.yaml.in/yaml/v4"
 _ "github.com/spf13/cobra"
 _ "github.com/google/go-cmp/cmp"
 _ "go.uber.org/goleak"
 _ "github.com/google/uuid"
 _ "github.com/rogpeppe/go-internal/testscript"
 _ "golang.org/x/sync/errgroup"
)

// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"
)

// project reads compose.yaml as docker compose does.
func project(t *testing.T) *types.Project {
	t.Helper()
	opts, err := cli.NewProjectOptions([]string{"compose.yaml"}, cli.WithProfiles([]string{"metrics"}),
		cli.WithEnv([]string{"POSTGRES_PASSWORD=pw", "REFRAIN_TOKEN=token", "GRAFANA_PASSWORD=own"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := opts.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// compose.yaml is one, and what it names is there: files, services and conditions. Its images have
// versions and, but for Temporal's, digests, and whoever is waited for says when it is well.
func TestCompose(t *testing.T) {
	p := project(t)
	pinned := regexp.MustCompile(`^([a-z0-9/-]+:v?\d+\.\d+[a-z0-9.-]*@sha256:[0-9a-f]{64}|temporalio/[a-z-]+:\d+\.\d+\.\d+|refrain:local)$`)
	for name, s := range p.Services {
		if !pinned.MatchString(s.Image) {
			t.Errorf("%s has the image %q, without a version and a digest", name, s.Image)
		}
		for on, how := range s.DependsOn {
			other, ok := p.Services[on]
			switch {
			case !ok:
				t.Errorf("%s needs %s, which is not there", name, on)
			case how.Condition == types.ServiceConditionHealthy && other.HealthCheck == nil:
				t.Errorf("%s waits until %s is healthy, which nobody checks", name, on)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if b := s.Build; b != nil {
			if _, err := os.Stat(filepath.Join(b.Context, b.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: the whole network reaches its port %d", name, port.Target)
			}
		}
		if !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") ||
			s.MemLimit == 0 || s.PidsLimit == 0 {
			t.Errorf("%s has more rights than it needs, or no limits", name)
		}
		if s.Image == "refrain:local" {
			if !s.ReadOnly || !slices.Equal(s.CapAdd, []string{"SETUID", "SETGID"}) || s.User != "" ||
				!slices.Equal(s.HealthCheck.Test[:4], []string{"CMD", "refrain", "doctor", "--server"}) {
				t.Errorf("%s writes into its image, cannot leave root, or has no check of its health: %v", name, s.HealthCheck.Test)
			}
		}
		for key, value := range s.Environment {
			if strings.Contains(key, "PASSWORD") && !strings.HasSuffix(key, "__FILE") && value != nil && *value != "pw" && *value != "token" {
				t.Errorf("%s: %s is written into the file", name, key)
			}
		}
	}
	if n := p.Services["worker"].Deploy.Replicas; n == nil || *n != 2 {
		t.Errorf("%v workers", n)
	}
	if _, err := cli.ProjectFromOptions(context.Background(), must(cli.NewProjectOptions([]string{"compose.yaml"}))); err == nil ||
		!strings.Contains(err.Error(), "write it into .env") {
		t.Errorf("without passwords: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The image leaves root, checks its health without other programs, and listens where a published port reaches it.
func TestImage(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nENV REFRAIN_USER=10001 ", "\nHEALTHCHECK ", `CMD ["refrain", "doctor", "--server", `, "\nCMD [\"serve\", \"--addr\", \"0.0.0.0:8080\"]",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile has no %q", want)
		}
	}
	for _, arg := range []string{"GO", "BASE"} { // the bases, and no others
		if !regexp.MustCompile(`(?m)^ARG ` + arg + `=[a-z]+:[0-9a-z.-]+@sha256:[0-9a-f]{64}$`).Match(text) {
			t.Errorf("%s has no digest", arg)
		}
	}
	for _, from := range regexp.MustCompile(`(?m)^FROM .*`).FindAllString(string(text), -1) {
		if from != "FROM ${GO} AS build" && from != "FROM ${BASE}" {
			t.Errorf("%q is a base without a digest", from)
		}
	}
	if g := project(t).Services["grafana"]; *g.Environment["GF_SECURITY_ADMIN_PASSWORD__FILE"] != "/run/secrets/grafana_password" ||
		len(g.Secrets) != 1 || g.Secrets[0].Source != "grafana_password" {
		t.Errorf("Grafana has no password of its own: %v", g.Secrets)
	}
}

// What Temporal, Prometheus and Grafana read is YAML, and they find each other.
func TestWhatTheServicesRead(t *testing.T) {
	read := func(name string, v any) {
		t.Helper()
		text, err := os.ReadFile(name)
		if err == nil {
			err = yaml.Unmarshal(text, v)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var dynamic map[string][]struct{ Value int }
	read("temporal/dynamicconfig.yaml", &dynamic)
	if rate := dynamic["history.transferProcessorMaxPollRPS"]; len(rate) != 1 || rate[0].Value <= 20 {
		t.Errorf("a shard of Temporal hands out %v tasks a second", rate)
	}
	var prom struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			Authorization struct {
				File string `yaml:"credentials_file"`
			}
			Static []struct{ Targets []string } `yaml:"static_configs"`
			DNS    []struct {
				Names []string
				Port  int
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	read("prometheus/prometheus.yaml", &prom)
	p := project(t)
	job := prom.ScrapeConfigs[0]
	if !slices.Equal(prom.RuleFiles, []string{"/etc/prometheus/alerts.yaml"}) || job.Authorization.File != "/run/secrets/refrain_token" ||
		p.Secrets["refrain_token"].Environment != "REFRAIN_TOKEN" {
		t.Errorf("got %+v", prom)
	}
	serve, worker := p.Services["serve"], p.Services["worker"]
	if !slices.Equal(job.Static[0].Targets, []string{"serve:8080"}) || !slices.Contains(serve.Command, "0.0.0.0:8080") ||
		after(serve.Command, "--host") != "serve" {
		t.Errorf("Prometheus asks %v, and serve is %v", job.Static, serve.Command)
	}
	if job.DNS[0].Names[0] != worker.Name || job.DNS[0].Port != 9090 || after(worker.Command, "--metrics") != "0.0.0.0:9090" {
		t.Errorf("Prometheus asks %v, and the workers are %v", job.DNS, worker.Command)
	}
	var sources struct {
		Datasources []struct{ URL, Type string }
	}
	read("grafana/provisioning/datasources/prometheus.yaml", &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].URL != "http://prometheus:9090" {
		t.Errorf("got %+v", sources)
	}
	var boards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	read("grafana/provisioning/dashboards/refrain.yaml", &boards)
	for _, v := range p.Services["grafana"].Volumes {
		if strings.HasSuffix(v.Source, "refrain.json") && filepath.Dir(v.Target) != boards.Providers[0].Options.Path {
			t.Errorf("the dashboard is at %s, and Grafana looks in %+v", v.Target, boards.Providers)
		}
	}
}

// after is the value of a flag.
func after(command []string, flag string) string {
	if i := slices.Index(command, flag); i >= 0 && i+1 < len(command) {
		return command[i+1]
	}
	return ""
}

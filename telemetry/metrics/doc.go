// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what runs do, for Prometheus.
//
//	m := metrics.New(metrics.Config{Version: "1.0"})
//	cfg := supervisor.Config{Service: store, AppName: "app", UserID: "ana", Build: build}
//	m.Observe(&cfg) // before the supervisor is made
//	sup, err := supervisor.New(cfg)
//	if err != nil {
//		return err
//	}
//	m.Watch(sup)
//	http.Handle("/metrics", m.Handler()) // or prometheus.MustRegister(m)
//
// Each counter counts only what this process has done. A resumed run does not repeat the counts of its earlier part,
// so a sum over all processes is correct. The metrics whose names begin with refrain_store_ describe all runs of the
// store, whichever process drives them. Every process reports the same values, so take the maximum over processes,
// not the sum.
//
// No label has the ID of a run. Names from definitions and models are labels. Each kind of label has at most
// [Config.MaxValues] values; further values become "other".
package metrics

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
// Counters count what this process has done, once: a resumed run does not count again what it did before. A
// sum over all processes is therefore right. The metrics whose names begin with refrain_store_ are about
// all runs of the store, whichever process drives them, so every process reports the same: take the maximum
// over processes, not the sum.
//
// No label has the ID of a run. Names from definitions and models are labels, and each kind of label
// has at most [Config.MaxValues] values: later ones are "other".
package metrics

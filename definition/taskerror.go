// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"regexp"
	"strconv"
)

// taskErrors lists the errors that taskagent has joined.
func taskErrors(err error) []error {
	for err != nil {
		if _, ok := err.(interface{ Unwrap() []error }); ok {
			return unjoin(err)
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return []error{err}
		}
		err = inner
	}
	return nil
}

// fileWords are taskagent's names in the words of a file.
var fileWords = map[string]string{
	"Args": "command", "Stdin": "stdin", "Env": "env", "CleanEnv": "clean_env", "Dir": "dir", "Root": "root",
	"OutputLimit": "output_limit", "Timeout": "timeout", "JSON": "json", "OKExitCodes": "ok_exit_codes",
	"URL": "url", "Method": "method", "Headers": "headers", "Header": "headers", "Body": "body",
	"BodyJSON": "body", "SizeLimit": "size_limit", "OKStatus": "ok_status", "RedirectHosts": "redirect_hosts", "Set": "set", "Value": "value", "Text": "text",
	"OutputKey": "output_key", "ResultKey": "result_key", "ExitWhen": "exit_when", "ExitReason": "exit_reason",
}

var (
	configName  = regexp.MustCompile(`\b(Args|Stdin|Env|CleanEnv|Dir|OutputLimit|Timeout|OKExitCodes|URL|Method|Headers?|Body|BodyJSON|SizeLimit|OKStatus|RedirectHosts|Set|Value|Text|OutputKey|ResultKey|ExitWhen|ExitReason)\b`)
	configField = regexp.MustCompile(`^([A-Z]\w*)(?:\[("(?:[^"\\]|\\.)*"|\d+)\])?(: )?`)
)

// splitField cuts the field off an error of taskagent, such as `Set["n"]: …`,
// and gives it in the words of a file.
func splitField(msg string) (field, rest string) {
	m := configField.FindStringSubmatch(msg)
	if m == nil || fileWords[m[1]] == "" {
		return "", msg
	}
	field = fileWords[m[1]]
	if key, err := strconv.Unquote(m[2]); err == nil {
		field += "." + key
	} else if m[2] != "" {
		field += "[" + m[2] + "]"
	}
	if m[3] != "" {
		msg = msg[len(m[0]):]
	}
	return field, msg
}

func inFileWords(msg string) string {
	return configName.ReplaceAllStringFunc(msg, func(name string) string {
		if w, ok := fileWords[name]; ok {
			return w
		}
		return name
	})
}

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// use is a place in the ProviderConfig that refers to an object.
type use struct {
	Reference
	field string
}

// References are the objects that a ProviderConfig refers to, sorted and each once.
func References(config *v1alpha1.ProviderConfigSpec) []Reference {
	all := uses(config)
	references := make([]Reference, 0, len(all))
	for _, use := range all {
		references = append(references, use.Reference)
	}
	slices.SortFunc(references, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(references)
}

func uses(config *v1alpha1.ProviderConfigSpec) []use {
	if config == nil {
		return nil
	}
	var all []use
	for _, secret := range config.ImagePullSecrets {
		all = append(all, use{Reference{Secret, secret.Name}, "spec.imagePullSecrets"})
	}
	if charts := config.Charts; charts != nil {
		if charts.PullSecret != nil {
			all = append(all, use{Reference{Secret, charts.PullSecret.Name}, "spec.charts.pullSecret"})
		}
		if charts.Verify != nil {
			all = append(all, use{Reference{Secret, charts.Verify.SecretRef.Name}, "spec.charts.verify.secretRef"})
		}
		if charts.ProxySecretRef != nil {
			all = append(all, use{Reference{Secret, charts.ProxySecretRef.Name}, "spec.charts.proxySecretRef"})
		}
	}
	if config.CABundleRef != nil {
		all = append(all, use{Reference{ConfigMap, config.CABundleRef.Name}, "spec.caBundleRef"})
	}
	return all
}

// missing names everything that the ProviderConfig refers to and that does not exist.
func missing(config *v1alpha1.ProviderConfigSpec, sources map[Reference]Version) *Blocked {
	var problems []problem
	for _, use := range uses(config) {
		if _, exists := sources[use.Reference]; exists {
			continue
		}
		reason := v1alpha1.ReasonSecretNotFound
		if use.Kind == ConfigMap {
			reason = v1alpha1.ReasonConfigMapNotFound
		}
		problems = append(problems, problem{reason, fmt.Sprintf("%s %q, which the ProviderConfig names in %s, does not exist", use.Kind, use.Name, use.field)})
	}
	return blockedBy(problems)
}

// maxMessageLength is what a condition's message may have at most in our API.
const maxMessageLength = 1024

// problem is one of several reasons to be blocked.
type problem struct {
	reason, message string
}

// blockedBy names all problems; the first one gives the reason.
func blockedBy(problems []problem) *Blocked {
	if len(problems) == 0 {
		return nil
	}
	messages := make([]string, 0, len(problems))
	for _, problem := range problems {
		messages = append(messages, problem.message)
	}
	return block(problems[0].reason, strings.Join(messages, "; "))
}

func block(reason, message string) *Blocked {
	return &Blocked{Reason: reason, Message: shortened(message, maxMessageLength)}
}

// shortened cuts a text between two characters.
func shortened(text string, limit int) string {
	const ellipsis = "…"
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	cut := 0
	for position := range text {
		if position > limit-len(ellipsis) {
			break
		}
		cut = position
	}
	return text[:cut] + ellipsis
}

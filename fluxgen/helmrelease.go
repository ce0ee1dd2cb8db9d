package fluxgen

import (
	"encoding/json"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	retryInterval    = time.Minute
	uninstallTimeout = 2 * time.Minute
	// Each revision is a Secret on the target, and Flux reads them all at every interval.
	maxHistory = 2
	unlimited  = -1
)

func helmReleaseOf(release Release) (*helmv2.HelmRelease, error) {
	values, err := inlineValues(release.Values)
	if err != nil {
		return nil, err
	}
	history := maxHistory
	return &helmv2.HelmRelease{
		TypeMeta:   metav1.TypeMeta{APIVersion: helmv2.GroupVersion.String(), Kind: helmv2.HelmReleaseKind},
		ObjectMeta: release.objectMeta(release.Name),
		Spec: helmv2.HelmReleaseSpec{
			ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: SourceName(release.Chart)},
			KubeConfig: &fluxmeta.KubeConfigReference{
				SecretRef: &fluxmeta.SecretKeyReference{Name: release.Target.secret, Key: release.Target.key},
			},
			ReleaseName:     release.Name,
			TargetNamespace: release.Target.namespace,
			// Flux's default is the HelmRelease's own namespace, which the target does not have.
			StorageNamespace: release.Target.namespace,
			Interval:         metav1.Duration{Duration: release.Interval},
			Timeout:          &metav1.Duration{Duration: release.Timeout},
			MaxHistory:       &history,
			DriftDetection:   &helmv2.DriftDetection{Mode: helmv2.DriftDetectionEnabled},
			Install:          install(release.Policy),
			Upgrade:          upgrade(release.Policy),
			Uninstall:        uninstall(release.Policy),
			ValuesFrom:       valuesFrom(release.ValuesSecrets),
			Values:           values,
		},
	}, nil
}

// install retries for ever and never uninstalls what failed: an uninstall would take CRDs, and with them all their objects, along. Flux looks
// at the remediation's retries even so, when a release record got lost after a failure, and would give up without them.
func install(policy Policy) *helmv2.Install {
	return &helmv2.Install{
		Strategy:             &helmv2.InstallStrategy{Name: string(helmv2.ActionStrategyRetryOnFailure), RetryInterval: &metav1.Duration{Duration: retryInterval}},
		Remediation:          &helmv2.InstallRemediation{Retries: unlimited},
		CRDs:                 helmv2.Skip,
		CreateNamespace:      policy.CreateNamespace,
		DisableTakeOwnership: !policy.Adopt,
		DisableWait:          !policy.Wait,
		DisableWaitForJobs:   !policy.Wait,
	}
}

func upgrade(policy Policy) *helmv2.Upgrade {
	return &helmv2.Upgrade{
		Strategy:             &helmv2.UpgradeStrategy{Name: string(helmv2.ActionStrategyRetryOnFailure), RetryInterval: &metav1.Duration{Duration: retryInterval}},
		Remediation:          &helmv2.UpgradeRemediation{Retries: unlimited},
		CRDs:                 helmv2.Skip,
		DisableTakeOwnership: !policy.Adopt,
		DisableWait:          !policy.Wait,
		DisableWaitForJobs:   !policy.Wait,
	}
}

// uninstall always waits: a release that is gone while its objects are not would be a lie.
func uninstall(policy Policy) *helmv2.Uninstall {
	propagation := "background"
	if policy.Wait {
		propagation = "foreground"
	}
	return &helmv2.Uninstall{Timeout: &metav1.Duration{Duration: uninstallTimeout}, DeletionPropagation: &propagation}
}

func valuesFrom(secrets []string) []helmv2.ValuesReference {
	references := make([]helmv2.ValuesReference, 0, len(secrets))
	for _, name := range secrets {
		references = append(references, helmv2.ValuesReference{Kind: "Secret", Name: name, ValuesKey: ValuesKey})
	}
	return references
}

func inlineValues(values map[string]any) (*apiextensionsv1.JSON, error) {
	if len(values) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("release: values cannot be written as JSON: %w", err)
	}
	return &apiextensionsv1.JSON{Raw: raw}, nil
}

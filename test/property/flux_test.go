package property

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// flux is a fake of source-controller and helm-controller. It is here for two things that the real ones cannot do: to take one step at a time,
// so that changes fall on every moment of theirs, and to count. It installs nothing; what it says of a release is only that it "runs" the
// chart and the values that it was last told to. Whether that is how Flux behaves is shown by the tests on the landscape, not here.
type flux struct{ platform client.Client }

const fluxFinalizer = "finalizers.fluxcd.io"

// published are the chart versions that the registry has, under every repository.
var published = []string{"0.1.0", "0.1.1"}

// chartDigest is the digest of a chart in the registry.
func chartDigest(name, version string) string { return digestOf(name, version) }

func digestOf(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		panic(err)
	}
	hash := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(hash[:])
}

// step reconciles every Flux object of a namespace once.
func (f flux) step(ctx context.Context, namespace string) error {
	var sources sourcev1.OCIRepositoryList
	if err := f.platform.List(ctx, &sources, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range sources.Items {
		if err := f.source(ctx, &sources.Items[i]); err != nil {
			return fmt.Errorf("fake source-controller: %w", err)
		}
	}
	var releases helmv2.HelmReleaseList
	if err := f.platform.List(ctx, &releases, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range releases.Items {
		if err := f.release(ctx, &releases.Items[i]); err != nil {
			return fmt.Errorf("fake helm-controller: %w", err)
		}
	}
	return nil
}

// finalize puts the finalizer on an object, or takes it off one that is deleted, and says whether the object is to be worked on.
func (f flux) finalize(ctx context.Context, object client.Object) (bool, error) {
	if !object.GetDeletionTimestamp().IsZero() {
		controllerutil.RemoveFinalizer(object, fluxFinalizer)
		return false, f.platform.Update(ctx, object)
	}
	if controllerutil.AddFinalizer(object, fluxFinalizer) {
		return true, f.platform.Update(ctx, object)
	}
	return true, nil
}

func (f flux) source(ctx context.Context, source *sourcev1.OCIRepository) error {
	if work, err := f.finalize(ctx, source); !work || err != nil {
		return err
	}
	before := source.DeepCopy()
	digest, failure := f.fetch(ctx, source)
	if failure != nil {
		message := failure.Error()
		apimeta.SetStatusCondition(&source.Status.Conditions, fluxCondition(source, sourcev1.FetchFailedCondition, metav1.ConditionTrue, sourcev1.OCIPullFailedReason, message))
		apimeta.SetStatusCondition(&source.Status.Conditions, fluxCondition(source, fluxmeta.ReadyCondition, metav1.ConditionFalse, sourcev1.OCIPullFailedReason, message))
	} else {
		source.Status.ObservedGeneration = source.Generation
		source.Status.Artifact = &fluxmeta.Artifact{Revision: source.Spec.Reference.Tag + "@" + digest}
		apimeta.RemoveStatusCondition(&source.Status.Conditions, sourcev1.FetchFailedCondition)
		apimeta.SetStatusCondition(&source.Status.Conditions, fluxCondition(source, fluxmeta.ReadyCondition, metav1.ConditionTrue, "Succeeded", "stored artifact"))
	}
	return f.writeStatus(ctx, source, before.Status, source.Status)
}

// fetch returns the digest of the chart.
func (f flux) fetch(ctx context.Context, source *sourcev1.OCIRepository) (string, error) {
	references := []*fluxmeta.LocalObjectReference{source.Spec.SecretRef, source.Spec.CertSecretRef, source.Spec.ProxySecretRef}
	if source.Spec.Verify != nil {
		references = append(references, source.Spec.Verify.SecretRef)
	}
	for _, reference := range references {
		if reference == nil {
			continue
		}
		if err := f.platform.Get(ctx, client.ObjectKey{Namespace: source.Namespace, Name: reference.Name}, &corev1.Secret{}); err != nil {
			return "", fmt.Errorf("failed to get credential: %w", err)
		}
	}
	name := source.Spec.URL[strings.LastIndex(source.Spec.URL, "/")+1:]
	if !slices.Contains(published, source.Spec.Reference.Tag) {
		return "", errors.New("MANIFEST_UNKNOWN: manifest unknown")
	}
	digest := chartDigest(name, source.Spec.Reference.Tag)
	if source.Spec.Reference.Digest != "" && source.Spec.Reference.Digest != digest {
		return "", errors.New("MANIFEST_UNKNOWN: manifest unknown")
	}
	return digest, nil
}

func (f flux) release(ctx context.Context, release *helmv2.HelmRelease) error {
	if work, err := f.finalize(ctx, release); !work || err != nil {
		return err
	}
	before := release.DeepCopy()
	if reason, err := f.install(ctx, release); err != nil {
		apimeta.SetStatusCondition(&release.Status.Conditions, fluxCondition(release, fluxmeta.ReadyCondition, metav1.ConditionFalse, reason, err.Error()))
	}
	return f.writeStatus(ctx, release, before.Status, release.Status)
}

// install "installs" or "upgrades", or says why it cannot.
func (f flux) install(ctx context.Context, release *helmv2.HelmRelease) (string, error) {
	source := &sourcev1.OCIRepository{}
	if err := f.platform.Get(ctx, client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.ChartRef.Name}, source); err != nil {
		return helmv2.ArtifactFailedReason, err
	}
	if source.Status.Artifact == nil || source.Status.ObservedGeneration != source.Generation {
		return "SourceNotReady", errors.New("the source is not ready")
	}
	var values []any
	for _, reference := range release.Spec.ValuesFrom {
		secret := &corev1.Secret{}
		if err := f.platform.Get(ctx, client.ObjectKey{Namespace: release.Namespace, Name: reference.Name}, secret); err != nil {
			return "ValuesError", err
		}
		values = append(values, secret.Data[reference.ValuesKey])
	}
	var inline any
	if release.Spec.Values != nil {
		if err := json.Unmarshal(release.Spec.Values.Raw, &inline); err != nil {
			return "ValuesError", err
		}
	}
	deploy(release, source, digestOf(values, inline))
	return "", nil
}

// deploy records a new revision, unless the newest one is the same.
func deploy(release *helmv2.HelmRelease, source *sourcev1.OCIRepository, config string) {
	version, digest, _ := strings.Cut(source.Status.Artifact.Revision, "@")
	wanted := helmv2.Snapshot{
		ChartName: release.Name, ChartVersion: version + "+" + digest[len("sha256:"):][:12], OCIDigest: digest, ConfigDigest: config, Status: "deployed", Version: 1,
	}
	history := release.Status.History
	if len(history) > 0 {
		wanted.Version = history[0].Version
	}
	if len(history) == 0 || *history[0] != wanted {
		for _, old := range history {
			old.Status = "superseded"
		}
		wanted.Version = len(history) + 1
		if len(history) > 0 {
			wanted.Version = history[0].Version + 1
		}
		history = append(helmv2.Snapshots{&wanted}, history...)
	}
	release.Status.History = history[:min(len(history), 2)]
	release.Status.ObservedGeneration, release.Status.LastAttemptedConfigDigest = release.Generation, config
	release.Status.Inventory = &helmv2.ResourceInventory{Entries: []helmv2.ResourceRef{{ID: "velero_" + release.Name + "_apps_Deployment", Version: "v1"}}}
	for _, conditionType := range []string{fluxmeta.ReadyCondition, helmv2.ReleasedCondition} {
		apimeta.SetStatusCondition(&release.Status.Conditions, fluxCondition(release, conditionType, metav1.ConditionTrue, helmv2.UpgradeSucceededReason, "Helm upgrade succeeded"))
	}
}

func fluxCondition(object client.Object, conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: object.GetGeneration()}
}

func (f flux) writeStatus(ctx context.Context, object client.Object, before, after any) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return f.platform.Status().Update(ctx, object)
}

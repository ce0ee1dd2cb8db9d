package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	veleroGroup = "velero.io"
	// maxExamples is how many objects a message names.
	maxExamples = 5
)

// userKinds hold users' data and wishes. The instances of all other kinds of Velero are the server's own.
var userKinds = []string{"Backup", "Restore", "Schedule", "BackupStorageLocation", "VolumeSnapshotLocation"}

// UserResources blocks a removal while a control plane has objects that belong to users: without the server nobody serves them, and with the
// CRDs they would be lost. The detail names kinds, counts and examples, so that their owner knows what to delete.
func UserResources(ctx context.Context, remote client.Client) (Progress, error) {
	var counts, examples []string
	for _, kind := range userKinds {
		instances, err := instancesOf(ctx, remote, kind)
		if err != nil {
			return Progress{}, remoteError(err)
		}
		if len(instances) == 0 {
			continue
		}
		counts = append(counts, fmt.Sprintf("%d of kind %s", len(instances), kind))
		for _, instance := range instances {
			examples = append(examples, fmt.Sprintf("%s %s/%s", kind, instance.Namespace, instance.Name))
		}
	}
	if len(counts) == 0 {
		return Progress{Done: true}, nil
	}
	return Progress{Failed: true, Detail: fmt.Sprintf("%s; delete them first, for example %s",
		strings.Join(counts, ", "), strings.Join(examples[:min(len(examples), maxExamples)], ", "))}, nil
}

// instancesOf lists the objects of one kind in all namespaces, sorted, without their contents; none when the kind is not served.
func instancesOf(ctx context.Context, remote client.Client, kind string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: veleroGroup, Version: "v1", Kind: kind + "List"})
	if err := remote.List(ctx, list); err != nil {
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list objects of kind %s: %w", kind, err)
	}
	slices.SortFunc(list.Items, func(a, b metav1.PartialObjectMetadata) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return list.Items, nil
}

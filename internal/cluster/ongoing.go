package cluster

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize bounds how many Backups are held at a time: there may be thousands.
const pageSize = 500

// workKinds are the kinds of what a server works on, with the word for one of them.
var workKinds = []struct{ kind, word string }{{"Backup", "backup"}, {"Restore", "restore"}}

// workPhases are those in which a server has begun and has not ended. What is in progress, the next server marks as failed; the others it takes
// up, though with plugins that may not be those that began. What is new or queued, it begins.
var workPhases = []string{
	"InProgress", "WaitingForPluginOperations", "WaitingForPluginOperationsPartiallyFailed", "Finalizing", "FinalizingPartiallyFailed",
}

// Ongoing names the backups and restores that the server of a control plane works on, in an order of their own.
func Ongoing(ctx context.Context, remote client.Client, namespace string) ([]string, error) {
	var names []string
	for _, work := range workKinds {
		found, err := ongoing(ctx, remote, namespace, work.kind)
		if err != nil {
			return nil, remoteError(err)
		}
		slices.Sort(found)
		for _, name := range found {
			names = append(names, work.word+" "+name)
		}
	}
	return names, nil
}

// ongoing are the names of those of one kind; none when the kind is not served.
func ongoing(ctx context.Context, remote client.Client, namespace, kind string) ([]string, error) {
	var names []string
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: veleroGroup, Version: "v1", Kind: kind + "List"})
	for {
		err := remote.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(list.GetContinue()))
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			if phase, _, _ := unstructured.NestedString(item.Object, "status", "phase"); slices.Contains(workPhases, phase) {
				names = append(names, item.GetName())
			}
		}
		if list.GetContinue() == "" {
			return names, nil
		}
	}
}

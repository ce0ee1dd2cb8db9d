package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/admission"
)

// stdin is the file name that stands for the standard input.
const stdin = "-"

// manifests are the objects that a command was given.
type manifests struct {
	veleros    []v1alpha1.Velero
	configs    []v1alpha1.ProviderConfig
	secrets    []corev1.Secret
	configMaps []corev1.ConfigMap
}

// load reads files, of which one may be the standard input. Each is read once, also when it is named twice.
func load(ctx context.Context, in io.Reader, paths ...string) (*manifests, error) {
	schemas, err := admission.New()
	if err != nil {
		return nil, err
	}
	found, read := &manifests{}, map[string]bool{}
	for _, path := range paths {
		if read[path] {
			continue
		}
		read[path] = true
		if err := found.file(ctx, schemas, path, in); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (m *manifests) file(ctx context.Context, schemas *admission.Schemas, path string, in io.Reader) error {
	name := path
	if path == stdin {
		name = "standard input"
	} else {
		file, err := os.Open(path) //nolint:gosec // the user names the file
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	objects, err := decode(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, object := range objects {
		if err := m.add(ctx, schemas, object); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// decode reads documents of YAML or JSON, and what is in lists.
func decode(in io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(content, []byte("null")) {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, err
		}
		if objects, err = flatten(objects, object); err != nil {
			return nil, err
		}
	}
}

// flatten adds an object, or all of a list. Items of a VeleroList, unlike those of a List, need not say what they are.
func flatten(objects []*unstructured.Unstructured, object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !object.IsList() || !strings.HasSuffix(object.GetKind(), "List") {
		return append(objects, object), nil
	}
	err := object.EachListItem(func(item runtime.Object) error {
		entry := item.(*unstructured.Unstructured)
		if kind := strings.TrimSuffix(object.GetKind(), "List"); entry.GetKind() == "" && kind != "" {
			entry.SetAPIVersion(object.GetAPIVersion())
			entry.SetKind(kind)
		}
		var err error
		objects, err = flatten(objects, entry)
		return err
	})
	return objects, err
}

func (m *manifests) add(ctx context.Context, schemas *admission.Schemas, object *unstructured.Unstructured) error {
	switch object.GetAPIVersion() + "/" + object.GetKind() {
	case "v1/Secret":
		return appendTo(&m.secrets, object)
	case "v1/ConfigMap":
		return appendTo(&m.configMaps, object)
	}
	if object.GetKind() == "Velero" && object.GetNamespace() == "" {
		object.SetNamespace(corev1.NamespaceDefault)
	}
	err := schemas.Admit(ctx, object)
	if apierrors.IsBadRequest(err) {
		// Unlike that of an invalid object, this message of the API server does not name it.
		return fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName(), err)
	}
	if err != nil {
		return err
	}
	if object.GetKind() == "Velero" {
		return appendTo(&m.veleros, object)
	}
	return appendTo(&m.configs, object)
}

func appendTo[T any](list *[]T, object *unstructured.Unstructured) error {
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
		return fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName(), err)
	}
	*list = append(*list, typed)
	return nil
}

// config is the ProviderConfig that applies: the only one, else the one with the provider's name, else the one named default.
func (m *manifests) config(providerName string) (*v1alpha1.ProviderConfig, error) {
	if len(m.configs) == 1 {
		return &m.configs[0], nil
	}
	for _, name := range []string{providerName, v1alpha1.DefaultProviderConfigName} {
		for i := range m.configs {
			if m.configs[i].Name == name {
				return &m.configs[i], nil
			}
		}
	}
	if len(m.configs) == 0 {
		return nil, errors.New("there is no ProviderConfig in what was given")
	}
	return nil, fmt.Errorf("none of the %d ProviderConfigs is named %q or %q; give one, or name it with --provider-name",
		len(m.configs), providerName, v1alpha1.DefaultProviderConfigName)
}

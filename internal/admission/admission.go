// Package admission treats manifests of this provider's kinds as the API server would, without one: it sets defaults and refuses what is not
// valid, with the API server's own messages.
package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/openmcp-project/service-provider-velero/api/crds"
)

// Schemas know every version of this provider's kinds.
type Schemas struct {
	kinds map[schema.GroupVersionKind]kind
}

type kind struct {
	namespaced bool
	structural *structuralschema.Structural
	properties validation.SchemaValidator
	rules      *cel.Validator
}

// New reads the CustomResourceDefinitions that this program carries.
func New() (*Schemas, error) {
	definitions, err := crds.CRDs()
	if err != nil {
		return nil, fmt.Errorf("decode the CRDs: %w", err)
	}
	schemas := &Schemas{kinds: map[schema.GroupVersionKind]kind{}}
	for _, definition := range definitions {
		for _, version := range definition.Spec.Versions {
			known, err := kindOf(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, fmt.Errorf("compile the schema of %s: %w", definition.Name, err)
			}
			known.namespaced = definition.Spec.Scope == apiextensionsv1.NamespaceScoped
			schemas.kinds[schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}] = known
		}
	}
	return schemas, nil
}

func kindOf(properties *apiextensionsv1.JSONSchemaProps) (kind, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(properties, &internal, nil); err != nil {
		return kind{}, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return kind{}, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return kind{}, err
	}
	return kind{structural: structural, properties: validator, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// Admit sets the defaults of an object, or says why the API server would not take it. Fields that do not exist are refused, as kubectl has the
// API server do it; a status is dropped, since nobody may set it so.
func (s *Schemas) Admit(ctx context.Context, object *unstructured.Unstructured) error {
	gvk := object.GroupVersionKind()
	known, exists := s.kinds[gvk]
	if !exists {
		return fmt.Errorf("no matches for kind %q in version %q", gvk.Kind, gvk.GroupVersion())
	}
	unstructured.RemoveNestedField(object.Object, "status")
	if unknown := unknownFields(object, known.structural); len(unknown) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
			gvk.Kind, gvk.Version, gvk.Kind, strings.Join(unknown, ", ")))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, known.structural)
	defaulting.Default(object.Object, known.structural)
	if problems := known.validate(ctx, object); len(problems) > 0 {
		return apierrors.NewInvalid(gvk.GroupKind(), object.GetName(), problems)
	}
	return nil
}

func unknownFields(object *unstructured.Unstructured, structural *structuralschema.Structural) []string {
	paths := pruning.PruneWithOptions(object.Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(paths)
	for i, path := range paths {
		paths[i] = fmt.Sprintf("unknown field %q", path)
	}
	return paths
}

// validate is in the order of the API server, whose rules are only evaluated on objects of the right shape.
func (k kind) validate(ctx context.Context, object *unstructured.Unstructured) field.ErrorList {
	problems := metavalidation.ValidateObjectMetaAccessor(object, k.namespaced, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	problems = append(problems, validation.ValidateCustomResource(nil, object.Object, k.properties)...)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, k.structural, object.Object)...)
	if k.rules == nil {
		return problems
	}
	if slices.ContainsFunc(problems, wrongShape) {
		return append(problems, field.Invalid(nil, nil,
			"some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	broken, _ := k.rules.Validate(ctx, nil, k.structural, object.Object, nil, celconfig.RuntimeCELCostBudget)
	return append(problems, broken...)
}

func wrongShape(problem *field.Error) bool {
	return slices.Contains([]field.ErrorType{
		field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
	}, problem.Type)
}

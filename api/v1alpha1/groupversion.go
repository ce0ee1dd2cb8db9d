// Package v1alpha1 is the API of service-provider-velero: Velero, what an end user asks for on the onboarding cluster, and ProviderConfig,
// what platform operators offer on the platform cluster.
//
// +kubebuilder:object:generate=true
// +groupName=velero.services.openmcp.cloud
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "velero.services.openmcp.cloud", Version: "v1alpha1"}

// SchemeBuilder collects the functions that add this package's types to a scheme.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds Velero, ProviderConfig and their lists to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Velero{}, &VeleroList{}, &ProviderConfig{}, &ProviderConfigList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

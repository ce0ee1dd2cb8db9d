package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	providerv1alpha1 "github.com/openmcp-project/openmcp-operator/api/provider/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/app"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// program is the operator's own program, and the kubeconfig of a user who may do exactly what init is listed to do.
type program struct {
	path, kubeconfig string
}

func built(t *testing.T) program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "service-provider-velero")
	// From this directory's place in the checkout.
	build := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", path, "../../cmd/service-provider-velero")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, output)
	}
	const user = "service-provider-velero-init"
	kubeconfig, err := world.Platform.UserKubeconfig(user)
	must(t, err)
	must(t, ensure(t.Context(), platform, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: app.PlatformInit()}))
	must(t, ensure(t.Context(), platform, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
	return program{path: path, kubeconfig: kubeconfig}
}

// init runs the command as openmcp-operator's Job does, in a namespace of the platform. It returns the exit code and what was printed.
func (p program) init(t *testing.T, namespace string, args ...string) (int, string) {
	t.Helper()
	return p.execute(t, "init", namespace, args...)
}

func (p program) execute(t *testing.T, name, namespace string, args ...string) (int, string) {
	t.Helper()
	must(t, ensure(t.Context(), platform, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	command := exec.CommandContext(t.Context(), p.path, append([]string{name, "--environment=integration", "--verbosity=INFO", "--kubeconfig=" + p.kubeconfig}, args...)...)
	command.Env = append(os.Environ(), "POD_NAME=init", "POD_NAMESPACE="+namespace, "POD_IP=127.0.0.1", "POD_SERVICE_ACCOUNT_NAME=init")
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), printed.String()
}

func TestInit(t *testing.T) {
	program := built(t)
	t.Run("FailuresRegisterNothing", func(t *testing.T) { failuresRegisterNothing(t, program) })
	t.Run("CRDsThatAreRefusedRegisterNothing", func(t *testing.T) { refusedCRDs(t, program) })
	t.Run("RunNeedsTheOnboardingCluster", func(t *testing.T) { runsOnlyWithAccess(t, program) })
	t.Run("Registers", func(t *testing.T) { registers(t, program) })
	t.Run("Repeats", func(t *testing.T) { repeats(t, program) })
	t.Run("RepairsCRDs", func(t *testing.T) { repairsCRDs(t, program) })
}

func serviceProvider(t *testing.T) *providerv1alpha1.ServiceProvider {
	t.Helper()
	provider := &providerv1alpha1.ServiceProvider{}
	must(t, platform.Get(t.Context(), client.ObjectKey{Name: landscape.ProviderName}, provider))
	return provider
}

// failuresRegisterNothing: openmcp-operator looks for every registered kind when it deletes a control plane, so one that is registered but
// not installed blocks the deletion of all of them.
func failuresRegisterNothing(t *testing.T, program program) {
	denyGrants(t, "init-denied")
	tests := map[string]struct {
		namespace string
		args      []string
		names     []string
	}{
		"AccessIsNeverGranted": {"init-denied", []string{"--provider-name=velero", "--access-timeout=3s"}, []string{"access to the onboarding cluster"}},
		"NoServiceProvider":    {"init-nobody", []string{"--provider-name=nobody"}, []string{"register", "nobody"}},
		"NoProviderName":       {"init-nobody", nil, []string{"--provider-name"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			code, printed := program.init(t, test.namespace, test.args...)
			if code != 1 {
				t.Errorf("exit code %d:\n%s", code, printed)
			}
			for _, name := range test.names {
				if !strings.Contains(printed, name) {
					t.Errorf("it does not name %q but prints:\n%s", name, printed)
				}
			}
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("it gave up after %s", took)
			}
			if registered := serviceProvider(t).Status.Resources; len(registered) > 0 {
				t.Errorf("it registered %v", registered)
			}
		})
	}
}

// denyGrants has the platform's API server refuse every grant in one namespace, as a platform without an onboarding cluster never grants.
func denyGrants(t *testing.T, namespace string) {
	t.Helper()
	fail := admissionregistrationv1.Fail
	rule := admissionregistrationv1.Rule{APIGroups: []string{"clusters.openmcp.cloud"}, APIVersions: []string{"*"}, Resources: []string{"clusterrequests/status", "accessrequests/status"}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update}, Rule: rule}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "never granted"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	must(t, ensure(t.Context(), platform, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	for _, object := range []client.Object{policy, binding} {
		must(t, platform.Create(t.Context(), object))
		t.Cleanup(func() { must(t, platform.Delete(context.WithoutCancel(t.Context()), object)) })
	}
	// The policy is in force when a probe is refused.
	probe := &clustersv1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, Spec: clustersv1alpha1.ClusterRequestSpec{Purpose: "none"}}
	must(t, platform.Create(t.Context(), probe))
	eventually(t, "the policy is in force", func(ctx context.Context) error {
		err := platform.Status().Patch(ctx, probe.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Pending","observedGeneration":1}}`)))
		if err != nil && strings.Contains(err.Error(), "never granted") {
			return nil
		}
		return fmt.Errorf("a probe answers %w", err)
	})
}

func registers(t *testing.T, program program) {
	code, printed := program.init(t, landscape.SystemNamespace, "--provider-name=velero")
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, printed)
	}
	want := []metav1.GroupVersionKind{{Group: "velero.services.openmcp.cloud", Version: "v1alpha1", Kind: "Velero"}}
	if diff := cmp.Diff(want, serviceProvider(t).Status.Resources); diff != "" {
		t.Errorf("registered kinds (-want +got):\n%s", diff)
	}
	for _, secret := range []string{"eyJ", "certificate-authority-data"} {
		if strings.Contains(printed, secret) {
			t.Errorf("it prints credentials:\n%s", printed)
		}
	}
	// The kind is served for whom it is registered.
	must(t, onboarding.List(t.Context(), &v1alpha1.VeleroList{}))
}

func repeats(t *testing.T, program program) {
	before := serviceProvider(t)
	for range 2 {
		if code, printed := program.init(t, landscape.SystemNamespace, "--provider-name=velero"); code != 0 {
			t.Fatalf("exit code %d:\n%s", code, printed)
		}
	}
	if diff := cmp.Diff(before.Status.Resources, serviceProvider(t).Status.Resources); diff != "" {
		t.Errorf("registered kinds (-first +third):\n%s", diff)
	}
}

// repairsCRDs: init brings the CRDs of an older or damaged installation up to date, and keeps the objects.
func repairsCRDs(t *testing.T, program program) {
	velero := created(t, onboarding, strings.Replace(guideVelero, "name: test-mcp", "name: kept", 1))
	config := created(t, platform, strings.Replace(guideProviderConfig, "name: default", "name: kept", 1))
	definitions := map[string]client.Client{"veleros.velero.services.openmcp.cloud": onboarding, "providerconfigs.velero.services.openmcp.cloud": platform}
	columns := map[string]int{}
	for name, cluster := range definitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		must(t, cluster.Get(t.Context(), client.ObjectKey{Name: name}, crd))
		columns[name] = len(crd.Spec.Versions[0].AdditionalPrinterColumns)
		crd.Spec.Versions[0].AdditionalPrinterColumns = nil
		must(t, cluster.Update(t.Context(), crd))
	}
	if code, printed := program.init(t, landscape.SystemNamespace, "--provider-name=velero"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, printed)
	}
	for name, cluster := range definitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		must(t, cluster.Get(t.Context(), client.ObjectKey{Name: name}, crd))
		if got := len(crd.Spec.Versions[0].AdditionalPrinterColumns); got != columns[name] || got == 0 {
			t.Errorf("%s has %d columns, want %d", name, got, columns[name])
		}
	}
	must(t, onboarding.Get(t.Context(), client.ObjectKeyFromObject(velero), velero))
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(config), config))
}

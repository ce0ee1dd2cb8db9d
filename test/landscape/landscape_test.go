package landscape_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev2alpha1 "github.com/openmcp-project/openmcp-operator/api/core/v2alpha1"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// shared is the landscape all tests of the package use. It comes up with the first test that needs it.
var shared = struct {
	sync.Once
	*landscape.Landscape
	err error
}{}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if shared.Landscape != nil {
		if err := shared.Down(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// up returns the shared landscape.
func up(t *testing.T) *landscape.Landscape {
	t.Helper()
	shared.Do(func() {
		shared.Landscape, shared.err = landscape.Up(context.Background(), landscape.Options{
			Name: "landscape-test", Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
		})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.Landscape
}

func clientOf(t *testing.T, cluster landscape.Cluster) client.Client {
	t.Helper()
	c, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually tries until check succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	const limit = time.Minute
	var err error
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(100 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %s: %v", what, limit, err)
}

// gone is nil when an object does not exist.
func gone(ctx context.Context, c client.Client, object client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%T %s is still there", object, object.GetName())
	}
	return err
}

// controlPlane asks for a control plane and waits until it is Ready.
func controlPlane(t *testing.T, l *landscape.Landscape, name string, labels map[string]string) landscape.Cluster {
	t.Helper()
	onboarding := clientOf(t, l.Onboarding)
	plane := &corev2alpha1.ControlPlane{}
	plane.Namespace, plane.Name, plane.Labels = "default", name, labels
	if err := onboarding.Create(t.Context(), plane); err != nil {
		t.Fatal(err)
	}
	eventually(t, "ControlPlane "+name+" is Ready", func() error {
		if err := onboarding.Get(t.Context(), client.ObjectKeyFromObject(plane), plane); err != nil {
			return err
		}
		if plane.Status.Phase != "Ready" {
			return fmt.Errorf("phase %s, conditions %+v", plane.Status.Phase, plane.Status.Conditions)
		}
		return nil
	})
	cluster, err := l.ControlPlane(t.Context(), plane.Namespace, plane.Name)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

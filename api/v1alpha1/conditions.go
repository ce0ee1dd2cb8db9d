package v1alpha1

// Condition types of Velero. All have positive polarity: True is good.
const (
	// ConditionReady is the summary: True when all others are True.
	ConditionReady = "Ready"
	// ConditionConfigurationValid is True when what is asked for is offered, and everything that the ProviderConfig refers to is usable.
	ConditionConfigurationValid = "ConfigurationValid"
	// ConditionAccessGranted is True when the control plane and the workload cluster can be reached with credentials of their own.
	ConditionAccessGranted = "AccessGranted"
	// ConditionControlPlaneInstalled is True when the wanted CRDs are on the control plane.
	ConditionControlPlaneInstalled = "ControlPlaneInstalled"
	// ConditionServerInstalled is True when the wanted Velero server runs.
	ConditionServerInstalled = "ServerInstalled"
)

// Reasons of the conditions of Velero and ProviderConfig. The README explains each of them to users and operators.
const (
	// ReasonReady: everything is as wanted.
	ReasonReady = "Ready"
	// ReasonValid: the configuration can be used.
	ReasonValid = "Valid"
	// ReasonValidWithWarnings: the configuration can be used, and something about it is known to go wrong.
	ReasonValidWithWarnings = "ValidWithWarnings"
	// ReasonGranted: all access is granted.
	ReasonGranted = "Granted"
	// ReasonInstalled: Flux runs the wanted release.
	ReasonInstalled = "Installed"

	// ReasonProviderConfigNotFound: the platform offers nothing yet.
	ReasonProviderConfigNotFound = "ProviderConfigNotFound"
	// ReasonVersionNotOffered: spec.version is not among the offered versions.
	ReasonVersionNotOffered = "VersionNotOffered"
	// ReasonPluginNotOffered: a plugin of that name is not offered at all.
	ReasonPluginNotOffered = "PluginNotOffered"
	// ReasonPluginVersionNotOffered: the plugin is offered, but not in that version.
	ReasonPluginVersionNotOffered = "PluginVersionNotOffered"
	// ReasonSecretNotFound: a Secret that the ProviderConfig names does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretInvalid: a Secret that the ProviderConfig names cannot be used for its purpose.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonConfigMapNotFound: a ConfigMap that the ProviderConfig names does not exist.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	// ReasonCABundleInvalid: the CA bundle has no usable certificate.
	ReasonCABundleInvalid = "CABundleInvalid"
	// ReasonValuesInvalid: the extra chart values of the ProviderConfig cannot be used.
	ReasonValuesInvalid = "ValuesInvalid"
	// ReasonNameConflict: an object that this Velero needs already exists, and its labels do not prove that it is ours.
	ReasonNameConflict = "NameConflict"
	// ReasonPlatformRefuses: the platform cluster does not let the operator write what this Velero needs.
	ReasonPlatformRefuses = "PlatformRefuses"
	// ReasonPlatformIncomplete: the platform cluster does not serve a kind that this Velero needs, as when Flux is not installed.
	ReasonPlatformIncomplete = "PlatformIncomplete"
	// ReasonPlatformUnavailable: nothing has succeeded on the platform cluster for a while, so the state is not known.
	ReasonPlatformUnavailable = "PlatformUnavailable"

	// ReasonControlPlaneNotFound: there is no control plane of this name and namespace.
	ReasonControlPlaneNotFound = "ControlPlaneNotFound"
	// ReasonControlPlaneDeleting: the control plane is being deleted, so nothing is installed on it any more.
	ReasonControlPlaneDeleting = "ControlPlaneDeleting"
	// ReasonWaitingForControlPlane: the control plane, or access to it, is not there yet.
	ReasonWaitingForControlPlane = "WaitingForControlPlane"
	// ReasonWaitingForWorkloadCluster: the workload cluster, or access to it, is not there yet.
	ReasonWaitingForWorkloadCluster = "WaitingForWorkloadCluster"
	// ReasonAccessDenied: the platform refused access.
	ReasonAccessDenied = "AccessDenied"
	// ReasonCredentialsInvalid: access was granted with credentials that cannot be used.
	ReasonCredentialsInvalid = "CredentialsInvalid"

	// ReasonWaitingForConfiguration: not installed because the configuration is not valid.
	ReasonWaitingForConfiguration = "WaitingForConfiguration"
	// ReasonWaitingForAccess: not installed because access is not granted.
	ReasonWaitingForAccess = "WaitingForAccess"
	// ReasonWaitingForCRDs: the server is installed after the CRDs.
	ReasonWaitingForCRDs = "WaitingForCRDs"
	// ReasonInstalling: Flux is installing or upgrading.
	ReasonInstalling = "Installing"
	// ReasonWaitingForBackup: a change of the server waits until the backups and restores that run are done.
	ReasonWaitingForBackup = "WaitingForBackup"
	// ReasonFetchingChart: Flux has not fetched the chart yet.
	ReasonFetchingChart = "FetchingChart"
	// ReasonChartNotFound: the chart registry has no such chart version or digest.
	ReasonChartNotFound = "ChartNotFound"
	// ReasonChartAccessDenied: the chart registry refused the credentials.
	ReasonChartAccessDenied = "ChartAccessDenied"
	// ReasonChartUntrusted: the chart registry's certificate or the chart's signature could not be verified.
	ReasonChartUntrusted = "ChartUntrusted"
	// ReasonChartUnavailable: the chart could not be fetched for another reason.
	ReasonChartUnavailable = "ChartUnavailable"
	// ReasonInstallFailed: Flux could not install the release; it keeps trying.
	ReasonInstallFailed = "InstallFailed"
	// ReasonUpgradeFailed: Flux could not upgrade the release; it keeps trying.
	ReasonUpgradeFailed = "UpgradeFailed"
	// ReasonImagePullFailed: the cluster cannot pull an image of the server or of a plugin.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonContainerFailed: the cluster cannot start the server or a plugin.
	ReasonContainerFailed = "ContainerFailed"
	// ReasonCrashLoop: the server or a plugin is started again and again, and ends each time.
	ReasonCrashLoop = "CrashLoop"
	// ReasonUnschedulable: no node takes the server's pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonPodRejected: the cluster does not accept the server's pod.
	ReasonPodRejected = "PodRejected"
	// ReasonStalled: Flux gave up.
	ReasonStalled = "Stalled"
	// ReasonSuspended: a platform operator suspended the release or the source of its chart.
	ReasonSuspended = "Suspended"
	// ReasonTargetUnreachable: Flux cannot reach the cluster, so the state is not known.
	ReasonTargetUnreachable = "TargetUnreachable"

	// ReasonUserResourcesExist: deletion waits until users have deleted their objects on the control plane.
	ReasonUserResourcesExist = "UserResourcesExist"
	// ReasonRemovingServer: deletion removes the server.
	ReasonRemovingServer = "RemovingServer"
	// ReasonRemovingWorkloadNamespace: deletion removes the server's namespace.
	ReasonRemovingWorkloadNamespace = "RemovingWorkloadNamespace"
	// ReasonRemovingControlPlane: deletion removes what was installed on the control plane.
	ReasonRemovingControlPlane = "RemovingControlPlane"
	// ReasonRemovingCRDs: deletion removes the CRDs that nothing uses any more.
	ReasonRemovingCRDs = "RemovingCRDs"
	// ReasonRemovingPlatformObjects: deletion removes the Flux sources and copied secrets.
	ReasonRemovingPlatformObjects = "RemovingPlatformObjects"
	// ReasonReleasingAccess: deletion gives the access back.
	ReasonReleasingAccess = "ReleasingAccess"
)

// EventDeletionIgnored is the reason of the one kind of Event that does not tell a condition's: a deletion that the operation annotation holds up.
const EventDeletionIgnored = "DeletionIgnored"
